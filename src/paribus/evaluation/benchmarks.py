"""Benchmarks of ours, and their registry; every other name of a task is one of lm-eval's or of the user's.

A benchmark is a reader, from a record to an item, and how its prompt is put together. The registry stands at the end,
as Python needs them all before it.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.data_files import SEGMENTATIONS, TRANSLATIONS
from paribus.evaluation.items import (
    AnswerItem,
    Benchmark,
    BenchmarkPrompt,
    BlankItem,
    Fields,
    Generation,
    Hub,
    Item,
    Reader,
    TextItem,
    accepted_answers,
    entry,
    index,
    lettered,
    literal,
    string,
    text,
    texts,
)

# BoolQ (Clark et al. 2019): yes or no questions about a passage.
BOOLQ_ANSWERS = ("no", "yes")


def _boolq_item(name: str, record: Fields) -> Item:
    """Fields passage, question and label (0 no, 1 yes)."""
    query = f"{text(record, 'passage')}\nQuestion: {text(record, 'question')}?\nAnswer:"
    return Item(name, query, BOOLQ_ANSWERS, index(record, "label", BOOLQ_ANSWERS))


BOOLQ = Benchmark(
    "boolq",
    "validation",
    _boolq_item,
    BenchmarkPrompt("BoolQ validation, prompt of lm-eval boolq"),
    Hub("aps/super_glue", "boolq"),
)


# HellaSwag (Zellers et al. 2019): how a description of a scene goes on.
def _hellaswag_item(name: str, record: Fields) -> Item:
    """Fields activity_label, ctx_a, ctx_b (may be empty), endings and label (index)."""
    context = f"{text(record, 'ctx_a')} {string(record, 'ctx_b').capitalize()}"
    endings = texts(record, "endings")
    choices = tuple(_hellaswag_text(ending) for ending in endings)
    return Item(
        name, _hellaswag_text(f"{text(record, 'activity_label')}: {context}"), choices, index(record, "label", endings)
    )


def _hellaswag_text(content: str) -> str:
    """Without the marks that WikiHow's articles left, as lm-eval does it."""
    content = content.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", content).replace("  ", " ")


HELLASWAG = Benchmark(
    "hellaswag",
    "validation",
    _hellaswag_item,
    BenchmarkPrompt("HellaSwag validation, prompt of lm-eval hellaswag"),
    Hub("Rowan/hellaswag"),
)


# OpenBookQA (Mihaylov et al. 2018): elementary science, four choices.
def _openbookqa_item(name: str, record: Fields) -> Item:
    """Fields question_stem, choices (text and label lists) and answerKey (one of the labels)."""
    return Item(name, text(record, "question_stem"), *lettered(record))


OPENBOOKQA = Benchmark(
    "openbookqa",
    "test",
    _openbookqa_item,
    BenchmarkPrompt("OpenBookQA test, prompt of lm-eval openbookqa"),
    Hub("allenai/openbookqa", "main"),
)


# PIQA (Bisk et al. 2020): which of two solutions reaches a goal.
def _piqa_item(name: str, record: Fields) -> Item:
    """Fields goal, sol1, sol2 and label (0 or 1)."""
    choices = (text(record, "sol1"), text(record, "sol2"))
    return Item(name, f"Question: {text(record, 'goal')}\nAnswer:", choices, index(record, "label", choices))


PIQA = Benchmark(
    "piqa", "validation", _piqa_item, BenchmarkPrompt("PIQA validation, prompt of lm-eval piqa"), Hub("baber/piqa")
)


# Social IQa (Sap et al. 2019): questions about people's motives and reactions.
def _siqa_item(name: str, record: Fields) -> Item:
    """Fields context, question, choices and label (index); or the hub's: answerA, answerB, answerC, label (1 to 3)."""
    query = f"Q: {text(record, 'context')} {text(record, 'question')}\nA:"
    if "choices" in record:
        choices = texts(record, "choices")
        return Item(name, query, choices, index(record, "label", choices))
    choices = tuple(text(record, f"answer{letter}") for letter in "ABC")
    return Item(name, query, choices, index(record, "label", choices, first=1))


SIQA = Benchmark(
    "siqa",
    "validation",
    _siqa_item,
    BenchmarkPrompt("Social IQa validation, prompt of lm-eval social_iqa"),
    Hub("lighteval/siqa"),
)


# StoryCloze (Mostafazadeh et al. 2016): the right ending of a story of four sentences.
STORYCLOZE_SENTENCES = 4


def _storycloze_item(name: str, record: Fields) -> Item:
    """Fields input_sentence_1 to input_sentence_4, sentence_quiz1, sentence_quiz2, answer_right_ending (1 or 2)."""
    query = " ".join(text(record, f"input_sentence_{number}") for number in range(1, STORYCLOZE_SENTENCES + 1))
    choices = (text(record, "sentence_quiz1"), text(record, "sentence_quiz2"))
    return Item(name, query, choices, index(record, "answer_right_ending", choices, first=1))


STORYCLOZE = Benchmark(
    "storycloze",
    "test",
    _storycloze_item,
    BenchmarkPrompt("StoryCloze 2016 test, prompt of lm-eval storycloze_2016"),
    Hub("LSDSem/story_cloze", "2016", train=False),
)


# Winogrande (Sakaguchi et al. 2020): which of two names a pronoun, here a blank, stands for.
WINOGRANDE_BLANK = "_"


def _winogrande_item(name: str, record: Fields) -> BlankItem:
    """Fields sentence (with the blank `_`), option1, option2 and answer (1 or 2)."""
    before, blank, after = text(record, "sentence").partition(WINOGRANDE_BLANK)
    if not blank or not after.strip():
        raise DataError(
            f"field `sentence` must have a blank `{WINOGRANDE_BLANK}` with text after it, not {record['sentence']!r}"
        )
    contexts = tuple(before + text(record, field) for field in ("option1", "option2"))
    return BlankItem(name, contexts, after.strip(), index(record, "answer", contexts, first=1))


WINOGRANDE = Benchmark(
    "winogrande",
    "validation",
    _winogrande_item,
    BenchmarkPrompt("Winogrande validation, prompt of lm-eval winogrande"),
    Hub("allenai/winogrande", "winogrande_xl"),
)


# ARC (Clark et al. 2018): grade-school science, an easy and a challenge set.
def _arc_item(name: str, record: Fields) -> Item:
    """Fields query (beginning with "Question: "), choices and gold (index); or the hub's.

    The hub's are question, choices (text and label lists) and answerKey (one of the labels).
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, f"{text(record, 'query')}\nAnswer:", choices, index(record, "gold", choices))
    return Item(name, f"Question: {text(record, 'question')}\nAnswer:", *lettered(record))


ARC_EASY = Benchmark(
    "arc_easy",
    "test",
    _arc_item,
    BenchmarkPrompt("ARC-Easy test, prompt of lm-eval arc_easy"),
    Hub("allenai/ai2_arc", "ARC-Easy"),
)
ARC_CHALLENGE = Benchmark(
    "arc_challenge",
    "test",
    _arc_item,
    BenchmarkPrompt("ARC-Challenge test, prompt of lm-eval arc_challenge"),
    Hub("allenai/ai2_arc", "ARC-Challenge"),
)


# CommonsenseQA (Talmor et al. 2019), answered by the letter of the choice.
def _commonsense_qa_item(name: str, record: Fields) -> Item:
    """Fields query (the whole prompt, choices listed in it), choices (letters) and gold (index); or the hub's.

    The hub's are question, choices (text and label lists) and answerKey; then the prompt is that of lm-eval
    commonsense_qa.
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, text(record, "query"), choices, index(record, "gold", choices))
    choices, gold = lettered(record)
    letters = tuple("ABCDEFGHIJ"[: len(choices)])
    listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip(letters, choices, strict=True))
    return Item(name, f"Question: {text(record, 'question').strip()}\n{listed}\nAnswer:", letters, gold)


COMMONSENSE_QA = Benchmark(
    "commonsense_qa",
    "validation",
    _commonsense_qa_item,
    BenchmarkPrompt("CommonsenseQA validation, prompt as in the file"),
    Hub("tau/commonsense_qa"),
)


# COPA (Roemmele et al. 2011): the more plausible cause or effect.
COPA_CONNECTORS = {"cause": "because", "effect": "therefore"}


def _copa_item(name: str, record: Fields) -> Item:
    """Fields query (premise and connector, such as "The woman retired, therefore"), choices and gold; or the hub's.

    The hub's are premise, question (cause or effect), choice1, choice2 and label; then the prompt is that of lm-eval
    copa.
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, text(record, "query"), choices, index(record, "gold", choices))
    question = text(record, "question")
    if question not in COPA_CONNECTORS:
        raise DataError(f"field `question` must be cause or effect, not {question!r}")
    capitalized = [text(record, field) for field in ("choice1", "choice2")]
    choices = tuple(choice[0].lower() + choice[1:] for choice in capitalized)
    query = f"{text(record, 'premise').strip()[:-1]} {COPA_CONNECTORS[question]}"
    return Item(name, query, choices, index(record, "label", choices))


COPA = Benchmark(
    "copa",
    "validation",
    _copa_item,
    BenchmarkPrompt("COPA validation, prompt as in the file"),
    Hub("aps/super_glue", "copa"),
)


# LAMBADA (Paperno et al. 2016), in OpenAI's form: the last word of a passage.
def _lambada_item(name: str, record: Fields) -> TextItem:
    """Field text, whose last word is predicted; or the fields context and continuation."""
    if "context" in record:
        return TextItem(name, text(record, "context"), f" {text(record, 'continuation')}")
    context, space, word = text(record, "text").rpartition(" ")
    if not context or not word:
        raise DataError(f"field `text` must be two words or more and end in one, not {record['text']!r}")
    return TextItem(name, context, space + word)


LAMBADA_OPENAI = Benchmark(
    "lambada_openai",
    "test",
    _lambada_item,
    BenchmarkPrompt("LAMBADA test, prompt of lm-eval lambada_openai", target_delimiter=""),
    Hub("EleutherAI/lambada_openai", "default", train=False),
)


# MemoTrap (Liu and Liu 2023): prompts whose right answer is not the one that was often read.
MEMOTRAP_FILES = ("proverb_ending", "proverb_translation", "hate_speech_ending", "history_of_science")


def _memotrap_item(name: str, record: Fields) -> Item:
    """Fields prompt, classes (a list, or one written as a string) and answer_index."""
    choices = texts({"classes": literal(record, "classes")}, "classes")
    return Item(name, text(record, "prompt"), choices, index(record, "answer_index", choices))


MEMOTRAP = tuple(
    Benchmark(
        f"memotrap_{file}",
        file,
        _memotrap_item,
        BenchmarkPrompt(f"MemoTrap {file}, prompt of lm-eval inverse_scaling_memo_trap", target_delimiter=""),
        parent="memotrap",
        also=("exact_match",),
    )
    for file in MEMOTRAP_FILES
)


# Classification of texts, with the label words of Min et al. 2022 (MetaICL, arXiv 2110.15943).
#
# In-Context Pretraining names that paper for its label words. They are those of the authors' code
# (github.com/facebookresearch/MetaICL, `preprocess`), which has no templates: a text, and on a line of its own the
# word; between examples two empty lines. There an offensive tweet is called `hate`. Of the texts its code's own
# prefixes (`sentence:` of SST-2, title and `[SEP]` of Amazon) are left out. Amazon and Yelp are the sets of two
# classes.
SENTIMENTS = ("negative", "positive")
TOPICS = ("World", "Sports", "Business", "Sci/Tech")
HATE = ("non-hate", "hate")
OFFENSIVE = ("non-offensive", "hate")
ONTOLOGY = (
    "Company", "EducationalInstitution", "Artist", "Athlete", "OfficeHolder", "MeanOfTransportation", "Building",
    "NaturalPlace", "Village", "Animal", "Plant", "Album", "Film", "WrittenWork",
)  # fmt: skip
MIXED_RECORDS = 16_384
"""Records at the begin of training splits that have both classes there. DBpedia's has one class after the other, and is
fetched whole."""


def _label_reader(field: str, words: tuple[str, ...]) -> Reader:
    """A reader of records with a text and a label (index of a word).

    A text may be empty: there is such a tweet in the training split of hate.
    """

    def item(name: str, record: Fields) -> Item:
        return Item(name, string(record, field).strip(), words, index(record, "label", words))

    return item


def _classification(name: str, split: str, item: Reader, hub: Hub) -> Benchmark:
    source = f"{name} {split}, label words of MetaICL"
    return Benchmark(name, split, item, BenchmarkPrompt(source, target_delimiter="\n", fewshot_delimiter="\n\n\n"), hub)


SST2 = _classification("sst2", "validation", _label_reader("sentence", SENTIMENTS), Hub("nyu-mll/glue", "sst2"))
AMAZON = _classification(
    "amazon", "test", _label_reader("content", SENTIMENTS), Hub("fancyzhx/amazon_polarity", examples=MIXED_RECORDS)
)
YELP = _classification(
    "yelp", "test", _label_reader("text", SENTIMENTS), Hub("fancyzhx/yelp_polarity", examples=MIXED_RECORDS)
)
TWEET_HATE = _classification("tweet_hate", "test", _label_reader("text", HATE), Hub("cardiffnlp/tweet_eval", "hate"))
TWEET_OFFENSIVE = _classification(
    "tweet_offensive", "test", _label_reader("text", OFFENSIVE), Hub("cardiffnlp/tweet_eval", "offensive")
)
AG_NEWS = _classification("ag_news", "test", _label_reader("text", TOPICS), Hub("fancyzhx/ag_news"))
DBPEDIA = _classification("dbpedia", "test", _label_reader("content", ONTOLOGY), Hub("fancyzhx/dbpedia_14"))
CLASSIFICATION = (AMAZON, SST2, YELP, TWEET_HATE, TWEET_OFFENSIVE, AG_NEWS, DBPEDIA)


# RACE (Lai et al. 2017): English examinations for high and middle school.
RACE_LETTERS = "ABCD"
RACE_BLANK = "  _  ."
"""How a question that is a sentence with a gap at its end is written."""


def _race_item(name: str, record: Fields) -> Item:
    """Fields article and problems (question, options, answer of each; a list, or one written as a string).

    The last problem is asked, the others with their answers are part of the prompt, as in lm-eval. A record with the
    fields question, options and answer has one problem.
    """
    problems = literal(record, "problems") if "problems" in record else [record]
    if not isinstance(problems, list) or not problems or not all(isinstance(one, Mapping) for one in problems):
        raise DataError(f"field `problems` must be a list of one or more problems, not {problems!r}")
    *shown, asked = problems
    query = f"Article: {text(record, 'article')}\n\n{''.join(map(_race_answered, shown))}{text(asked, 'question')}"
    return Item(name, query, texts(asked, "options", least=4), _race_gold(asked))


def _race_answered(problem: Mapping[str, Any]) -> str:
    question, answer = text(problem, "question"), texts(problem, "options", least=4)[_race_gold(problem)]
    if question.endswith(RACE_BLANK):
        return f"{question[:-5]}{answer}\n"
    return f"Question: {question}\nAnswer: {answer}\n"


def _race_gold(problem: Mapping[str, Any]) -> int:
    answer = text(problem, "answer")
    if len(answer) != 1 or answer not in RACE_LETTERS:
        raise DataError(f"field `answer` must be one of {', '.join(RACE_LETTERS)}, not {answer!r}")
    return RACE_LETTERS.index(answer)


RACE_HIGH = Benchmark(
    "race_high",
    "test",
    _race_item,
    BenchmarkPrompt("RACE-High test, prompt of lm-eval race"),
    Hub("EleutherAI/race", "high", train_path="ehovy/race"),
)
RACE_MIDDLE = Benchmark(
    "race_middle",
    "test",
    _race_item,
    BenchmarkPrompt("RACE-Middle test, prompt of lm-eval race; on the hub every question is a record of its own"),
    Hub("ehovy/race", "middle"),
)


# SQuAD v1.1 (Rajpurkar et al. 2016): the span of a passage that answers a question.
def _squad_item(name: str, record: Fields) -> AnswerItem:
    """Fields title, context, question and answers (with the list text)."""
    title, context, question = (text(record, field) for field in ("title", "context", "question"))
    found = entry(record, "answers")
    if not isinstance(found, Mapping):
        raise DataError(f"field `answers` must hold the list text, not {found!r}")
    query = f"Title: {title}\n\nBackground: {context}\n\nQuestion: {question}\n\nAnswer:"
    return AnswerItem(name, query, accepted_answers(found, "text"))


SQUAD = Benchmark(
    "squad",
    "validation",
    _squad_item,
    BenchmarkPrompt("SQuAD v1.1 validation, prompt of lm-eval squadv2"),
    Hub("rajpurkar/squad"),
    Generation(("\n",), "squad"),
)


# HotpotQA (Yang et al. 2018), distractor setting: questions that need two of ten paragraphs.
def _hotpotqa_item(name: str, record: Fields) -> AnswerItem:
    """Fields question, answer and context (the lists title and, for each, sentences)."""
    context = entry(record, "context")
    if not isinstance(context, Mapping):
        raise DataError(f"field `context` must hold the lists title and sentences, not {context!r}")
    query = f"{_hotpotqa_paragraphs(context)}\nQuestion: {text(record, 'question')}\nAnswer:"
    return AnswerItem(name, query, ((text(record, "answer"),),))


def _hotpotqa_paragraphs(context: Fields) -> str:
    titles, sentences = texts(context, "title", least=1), entry(context, "sentences")
    if not isinstance(sentences, list) or len(sentences) != len(titles) or not all(map(_hotpotqa_sentences, sentences)):
        raise DataError(f"field `sentences` must be a list of texts for each of {len(titles)} titles")
    return "\n".join(f"{title}: {''.join(part).strip()}" for title, part in zip(titles, sentences, strict=True))


def _hotpotqa_sentences(sentences: Any) -> bool:
    return isinstance(sentences, list) and all(isinstance(sentence, str) for sentence in sentences)


HOTPOTQA = Benchmark(
    "hotpotqa",
    "validation",
    _hotpotqa_item,
    BenchmarkPrompt("HotpotQA validation, distractor setting, all paragraphs before the question"),
    Hub("hotpotqa/hotpot_qa", "distractor"),
    Generation(("\n",), "squad"),
)


# DROP (Dua et al. 2019): questions about a passage that need counting, sorting or arithmetic.
DROP_DATE = ("day", "month", "year")


def _drop_item(name: str, record: Fields) -> AnswerItem:
    """Fields passage, question, answer (number, spans, date) and validated_answers (a list of each).

    Examples show the answer's text; lm-eval's own task shows the names of its fields there.
    """
    answers = dict.fromkeys(map(_drop_spans, [_drop_block(record, "answer"), *_drop_validated(record)]))
    if not any(spans[0].strip() for spans in answers):
        raise DataError("field `answer` has no number, spans or date")
    accepted = tuple(spans for spans in answers if spans[0].strip())
    return AnswerItem(name, f"{text(record, 'passage')} {text(record, 'question')}", accepted)


def _drop_block(record: Fields, field: str) -> Fields:
    block = entry(record, field)
    if not isinstance(block, Mapping):
        raise DataError(f"field `{field}` must hold number, spans and date, not {block!r}")
    return block


def _drop_validated(record: Fields) -> list[Fields]:
    """The other annotators' answers."""
    block = _drop_block(record, "validated_answers") if "validated_answers" in record else {}
    lists = [block.get(field, []) for field in ("number", "spans", "date")]
    if not all(isinstance(part, list) and len(part) == len(lists[0]) for part in lists):
        raise DataError(f"field `validated_answers` must hold lists of one length, not {block!r}")
    return [{"number": number, "spans": spans, "date": date} for number, spans, date in zip(*lists, strict=True)]


def _drop_spans(answer: Fields) -> tuple[str, ...]:
    if number := string(answer, "number"):
        return (number,)
    spans = entry(answer, "spans")
    if not isinstance(spans, list) or not all(isinstance(span, str) for span in spans):
        raise DataError(f"field `spans` must be a list of texts, not {spans!r}")
    if spans:
        return tuple(spans)
    date = _drop_block(answer, "date")
    return (" ".join(string(date, part) for part in DROP_DATE).strip(),)


DROP = Benchmark(
    "drop",
    "validation",
    _drop_item,
    BenchmarkPrompt("DROP validation, prompt of lm-eval drop"),
    Hub("EleutherAI/drop"),
    Generation((".",), "drop"),
)


PASSAGES = 10
"""The first so many are in the prompt, as in In-Context Pretraining (arXiv 2310.10638)."""


def open_book_item(name: str, record: Fields, query: str) -> AnswerItem:
    """Fields answers and ctxs (passages with title and text, the best first), as retrievers write them."""
    return AnswerItem(name, passages(record) + query, accepted_answers(record, "answers"))


def passages(record: Fields) -> str:
    """The first passages of the field `ctxs`, each title and text, a line each."""
    found = entry(record, "ctxs")
    if not isinstance(found, list) or not found or not all(isinstance(passage, Mapping) for passage in found):
        raise DataError(f"field `ctxs` must be a list of one or more passages with title and text, not {found!r}")
    return "".join(
        f"{_passage_heading(passage)}{_on_one_line(text(passage, 'text'))}\n" for passage in found[:PASSAGES]
    )


def _passage_heading(passage: Fields) -> str:
    title = _on_one_line(string(passage, "title")) if "title" in passage else ""
    return f"{title}: " if title else ""


def _on_one_line(content: str) -> str:
    return " ".join(content.split())


# TriviaQA (Joshi et al. 2017), without context and with retrieved passages.
TRIVIAQA_GENERATION = Generation(
    ("\n", ".", ","), "lm_eval", MappingProxyType({"ignore_case": True, "ignore_punctuation": True})
)


def _triviaqa_item(name: str, record: Fields) -> AnswerItem:
    """Fields question and answer (with the list aliases)."""
    answer = entry(record, "answer")
    if not isinstance(answer, Mapping):
        raise DataError(f"field `answer` must hold the list aliases, not {answer!r}")
    return AnswerItem(name, _triviaqa_query(record), accepted_answers(answer, "aliases"))


def _triviaqa_open_book(name: str, record: Fields) -> AnswerItem:
    """Field question, and those of `open_book_item`."""
    return open_book_item(name, record, _triviaqa_query(record))


def _triviaqa_query(record: Fields) -> str:
    return f"Question: {text(record, 'question')}?\nAnswer:"


TRIVIAQA = Benchmark(
    "triviaqa",
    "validation",
    _triviaqa_item,
    BenchmarkPrompt("TriviaQA validation without context, prompt of lm-eval triviaqa"),
    Hub("mandarjoshi/trivia_qa", "rc.nocontext"),
    TRIVIAQA_GENERATION,
)
TRIVIAQA_OPEN_BOOK = Benchmark(
    "triviaqa_open_book",
    "validation",
    _triviaqa_open_book,
    BenchmarkPrompt("TriviaQA with retrieved passages before the prompt of lm-eval triviaqa"),
    generation=TRIVIAQA_GENERATION,
)


# WebQuestions (Berant et al. 2013): questions that Freebase answers.
def _webqs_item(name: str, record: Fields) -> AnswerItem:
    """Fields question and answers."""
    return AnswerItem(name, f"Question: {text(record, 'question')}\nAnswer:", accepted_answers(record, "answers"))


WEBQS = Benchmark(
    "webqs",
    "test",
    _webqs_item,
    BenchmarkPrompt("WebQuestions test, prompt of lm-eval webqs, the answer written instead of scored"),
    Hub("stanfordnlp/web_questions"),
    Generation(("\n",), "squad"),
)


# Natural Questions with short answers (Lee et al. 2019), without context and with retrieved passages.
NQ_DESCRIPTION = "Answer these questions:\n\n"
NQ_GENERATION = Generation(
    ("\n", ".", ","),
    "lm_eval",
    MappingProxyType(
        {
            "ignore_case": True,
            "ignore_punctuation": True,
            "regexes_to_ignore": [r"\b(?:The |the |An |A |The |a |an )"],
        }
    ),
)


def _nq_item(name: str, record: Fields) -> AnswerItem:
    """Fields question and answer (a list)."""
    return AnswerItem(name, _nq_query(record), accepted_answers(record, "answer"))


def _nq_open_book(name: str, record: Fields) -> AnswerItem:
    """Field question, and those of `open_book_item`."""
    return open_book_item(name, record, _nq_query(record))


def _nq_query(record: Fields) -> str:
    return f"Q: {text(record, 'question')}?\nA:"


NQ_OPEN = Benchmark(
    "nq_open",
    "validation",
    _nq_item,
    BenchmarkPrompt(
        "NQ-open validation, prompt of lm-eval nq_open", fewshot_delimiter="\n", description=NQ_DESCRIPTION
    ),
    Hub("google-research-datasets/nq_open"),
    NQ_GENERATION,
)
NQ_OPEN_BOOK = Benchmark(
    "nq_open_book",
    "validation",
    _nq_open_book,
    BenchmarkPrompt("NQ-open with retrieved passages before the prompt of lm-eval nq_open", description=NQ_DESCRIPTION),
    generation=NQ_GENERATION,
)


# NQ-Swap (Longpre et al. 2021): questions whose passage was changed, so that it contradicts what a model remembers.
def _nq_swap_item(name: str, record: Fields) -> AnswerItem:
    """Fields question, sub_context (the changed passage) and sub_answer (a list: what the passage now says)."""
    query = f"{text(record, 'sub_context').strip()}\nQuestion: {text(record, 'question')}?\nAnswer:"
    return AnswerItem(name, query, accepted_answers(record, "sub_answer"))


NQ_SWAP = Benchmark(
    "nq_swap",
    "dev",
    _nq_swap_item,
    BenchmarkPrompt("NQ-Swap, the changed passage before the question"),
    Hub("pminervini/NQ-Swap", train=False),
    Generation(("\n",), "squad"),
)


CONTINUATION = "continuation"
"""The task made from held-out text; it needs no files."""

_COMMONSENSE = (
    BOOLQ, HELLASWAG, OPENBOOKQA, PIQA, SIQA, STORYCLOZE, WINOGRANDE, ARC_EASY, ARC_CHALLENGE, COMMONSENSE_QA, COPA,
)  # fmt: skip
_READING = (RACE_HIGH, RACE_MIDDLE, SQUAD, HOTPOTQA, DROP)
_ANSWERS = (TRIVIAQA, WEBQS, NQ_OPEN, TRIVIAQA_OPEN_BOOK, NQ_OPEN_BOOK, NQ_SWAP)
BENCHMARKS = MappingProxyType(
    {
        benchmark.name: benchmark
        for benchmark in (*_COMMONSENSE, LAMBADA_OPENAI, *MEMOTRAP, *CLASSIFICATION, *_READING, *_ANSWERS)
    }
)


def task_names() -> list[str]:
    """Every task of ours, `continuation` first."""
    return [CONTINUATION, *BENCHMARKS, *TRANSLATIONS, *SEGMENTATIONS]


def is_ours(name: str) -> bool:
    """Whether a task is one of ours."""
    return name in (CONTINUATION, *BENCHMARKS, *TRANSLATIONS, *SEGMENTATIONS)


def unknown_task(name: str, tasks: Sequence[str] | None = None) -> str | None:
    """What is wrong with a name that is none of `tasks`, by default all, with the nearest; None for a known name."""
    known = task_names() if tasks is None else tasks
    if name in known:
        return None
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    return f"unknown task {name!r}; {hint}known: {', '.join(known)}"


def benchmarks(tasks: tuple[str, ...]) -> list[Benchmark]:
    """The benchmarks among known `tasks`, in the order asked for."""
    return [BENCHMARKS[name] for name in tasks if name in BENCHMARKS]


def prompted(tasks: tuple[str, ...]) -> list[str]:
    """The tasks whose items are prompts, so that there are examples and shots; the others are lists of files' lines."""
    return [name for name in tasks if name not in TRANSLATIONS and name not in SEGMENTATIONS]
