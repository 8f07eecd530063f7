"""One record of each benchmark as its hub data set has it, for tests without the real files."""

from types import MappingProxyType
from typing import Any

STORY = {
    f"input_sentence_{number}": sentence
    for number, sentence in enumerate(("Ann ran.", "It rained.", "She fell.", "She cried."), 1)
}
PROBLEMS = [
    {"question": "Who ran?", "answer": "B", "options": ["Bob", "Ann", "Cid", "Dan"]},
    {"question": "She ran to the  _  .", "answer": "A", "options": ["park", "shop", "sea", "zoo"]},
    {"question": "Why did she run?", "answer": "D", "options": ["fun", "fear", "rain", "health"]},
]
LETTERED = {"text": ["a marsh", "a desert", "a hill", "a sea", "a town"], "label": list("ABCDE")}
NO_DATE = {"day": "", "month": "", "year": ""}
PASSAGES = [{"title": f"Page {number}", "text": f"Fact\n{number}."} for number in range(12)]
RECORDS = MappingProxyType[str, dict[str, Any]](
    {
        "boolq": {"passage": "Water is wet.", "question": "is water wet", "label": 1},
        "hellaswag": {
            "activity_label": "Roof shingle removal",
            "ctx_a": "A man is  sitting on a roof. [header] How [title] To do",
            "ctx_b": "he",
            "endings": ["starts pulling up [substeps] roofing.", "is holding a rock.", "sings.", "jumps."],
            "label": "0",
        },
        "openbookqa": {"question_stem": "Fog is likely around", "choices": LETTERED, "answerKey": "A"},
        "piqa": {"goal": "Open a jar", "sol1": "Twist the lid.", "sol2": "Eat the lid.", "label": 0},
        "siqa": {
            "context": "Al left.",
            "question": "Why?",
            "answerA": "anger",
            "answerB": "love",
            "answerC": "hunger",
            "label": "2",
        },
        "storycloze": STORY | {"sentence_quiz1": "She slept.", "sentence_quiz2": "It flew.", "answer_right_ending": 1},
        "winogrande": {
            "sentence": "Ann beat Eve because _ was fast.",
            "option1": "Ann",
            "option2": "Eve",
            "answer": "1",
        },
        "arc_easy": {"question": "What is ice?", "choices": LETTERED, "answerKey": "B"},
        "arc_challenge": {"question": "What is ice?", "choices": LETTERED, "answerKey": "B"},
        "commonsense_qa": {"question": "Where is fog? ", "choices": LETTERED, "answerKey": "D"},
        "copa": {
            "premise": "The man fell.",
            "question": "cause",
            "choice1": "It was icy.",
            "choice2": "He sang.",
            "label": 0,
        },
        "lambada_openai": {"text": "She did not care about signs"},
        "memotrap_proverb_ending": {
            "prompt": 'Write a quote that ends in the word "heavy": Absence makes the heart grow',
            "classes": [" heavy.", " fonder."],
            "answer_index": 0,
        },
        "race_high": {"article": "Ann ran.", "problems": str(PROBLEMS)},
        "sst2": {"sentence": "a fine film ", "label": 1},
        "amazon": {"title": "Good", "content": "It works.", "label": 1},
        "yelp": {"text": "Bad food.", "label": 0},
        "tweet_hate": {"text": "be kind", "label": 0},
        "tweet_offensive": {"text": "be kind", "label": 0},
        "ag_news": {"text": "Talks fail. The talks failed.", "label": 2},
        "dbpedia": {"title": "Ann", "content": "Ann is a singer.", "label": 2},
        "triviaqa": {"question": "Who sang it", "answer": {"value": "Ann", "aliases": ["Ann", "Ann Lee", "it's [A]"]}},
        "webqs": {"question": "who ran?", "answers": ["Ann", "Bob"]},
        "nq_open": {"question": "who ran", "answer": ["Ann Lee", "Ann"]},
        "nq_swap": {
            "question": "who ran",
            "org_context": "Ann ran.",
            "org_answer": ["Ann"],
            "sub_context": "Bob ran.",
            "sub_answer": ["Bob"],
        },
        "squad": {
            "id": "1",
            "title": "Running",
            "context": "Ann ran home.",
            "question": "Who ran?",
            "answers": {"text": ["Ann", "Ann"], "answer_start": [0, 0]},
        },
        "hotpotqa": {
            "question": "Who ran?",
            "answer": "Ann",
            "context": {"title": ["Ann", "Bob"], "sentences": [["Ann ran.", " She won."], ["Bob sat."]]},
        },
        "drop": {
            "query_id": "1",
            "passage": "Ann ran 3 miles and Bob 5.",
            "question": "Who ran?",
            "answer": {"number": "", "date": NO_DATE, "spans": ["Ann", "Bob"]},
            "validated_answers": {
                "number": ["", "2", ""],
                "date": [NO_DATE, NO_DATE, {"day": "", "month": "May", "year": "1990"}],
                "spans": [["Bob", "Ann"], [], []],
            },
        },
        "triviaqa_open_book": {"question": "Who sang it", "answers": ["Ann"], "ctxs": PASSAGES},
        "nq_open_book": {"question": "who ran", "answers": ["Ann"], "ctxs": PASSAGES},
        "race_middle": {"article": "Ann ran."} | PROBLEMS[0],
    }
)
