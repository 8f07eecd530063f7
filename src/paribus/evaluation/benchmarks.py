"""Benchmarks of ours, and their registry; every other name of a task is one of lm-eval's or of the user's.

A benchmark is a reader, from a record to an item, and how its prompt is put together. The registry stands at the end,
as Python needs them all before it.
"""

import re
from collections.abc import Callable, Mapping
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
    block,
    entry,
    index,
    lettered,
    literal,
    string,
    text,
    texts,
)


# BoolQ (Clark et al. 2019): yes or no questions about a passage.
def _boolq_item(name: str, record: Fields) -> Item:
    """Fields passage, question and label (0 no, 1 yes)."""
    query, choices = f"{text(record, 'passage')}\nQuestion: {text(record, 'question')}?\nAnswer:", ("no", "yes")
    return Item(name, query, choices, index(record, "label", choices))


# HellaSwag (Zellers et al. 2019): how a description of a scene goes on.
def _hellaswag_item(name: str, record: Fields) -> Item:
    """Fields activity_label, ctx_a, ctx_b (may be empty), endings and label (index)."""
    context, endings = f"{text(record, 'ctx_a')} {string(record, 'ctx_b').capitalize()}", texts(record, "endings")
    query = _hellaswag_text(f"{text(record, 'activity_label')}: {context}")
    return Item(name, query, tuple(map(_hellaswag_text, endings)), index(record, "label", endings))


def _hellaswag_text(content: str) -> str:
    """Without the marks that WikiHow's articles left, as lm-eval does it."""
    content = content.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", content).replace("  ", " ")


# OpenBookQA (Mihaylov et al. 2018): elementary science, four choices.
def _openbookqa_item(name: str, record: Fields) -> Item:
    """Fields question_stem, choices (text and label lists) and answerKey (one of the labels)."""
    return Item(name, text(record, "question_stem"), *lettered(record))


# PIQA (Bisk et al. 2020): which of two solutions reaches a goal.
def _piqa_item(name: str, record: Fields) -> Item:
    """Fields goal, sol1, sol2 and label (0 or 1)."""
    choices = (text(record, "sol1"), text(record, "sol2"))
    return Item(name, f"Question: {text(record, 'goal')}\nAnswer:", choices, index(record, "label", choices))


# Social IQa (Sap et al. 2019): questions about people's motives and reactions.
def _siqa_item(name: str, record: Fields) -> Item:
    """Fields context, question, choices and label (index); or the hub's: answerA, answerB, answerC, label (1 to 3)."""
    query = f"Q: {text(record, 'context')} {text(record, 'question')}\nA:"
    if "choices" in record:
        choices = texts(record, "choices")
        return Item(name, query, choices, index(record, "label", choices))
    choices = tuple(text(record, f"answer{letter}") for letter in "ABC")
    return Item(name, query, choices, index(record, "label", choices, first=1))


# StoryCloze (Mostafazadeh et al. 2016): the right ending of a story of four sentences.
def _storycloze_item(name: str, record: Fields) -> Item:
    """Fields input_sentence_1 to input_sentence_4, sentence_quiz1, sentence_quiz2, answer_right_ending (1 or 2)."""
    query = " ".join(text(record, f"input_sentence_{number}") for number in (1, 2, 3, 4))
    choices = (text(record, "sentence_quiz1"), text(record, "sentence_quiz2"))
    return Item(name, query, choices, index(record, "answer_right_ending", choices, first=1))


# Winogrande (Sakaguchi et al. 2020): which of two names a pronoun, here a blank, stands for.
def _winogrande_item(name: str, record: Fields) -> BlankItem:
    """Fields sentence (with the blank `_`), option1, option2 and answer (1 or 2)."""
    before, blank, after = text(record, "sentence").partition("_")
    if not blank or not after.strip():
        raise DataError(f"field `sentence` must have a blank `_` with text after it, not {record['sentence']!r}")
    contexts = tuple(before + text(record, field) for field in ("option1", "option2"))
    return BlankItem(name, contexts, after.strip(), index(record, "answer", contexts, first=1))


# ARC (Clark et al. 2018): grade-school science, an easy and a challenge set.
def _arc_item(name: str, record: Fields) -> Item:
    """Fields query (beginning with "Question: "), choices and gold (index); or the hub's.

    The hub's are question, choices (text and label lists) and answerKey (one of the labels).
    """
    if "query" in record:
        choices = texts(record, "choices")
        return Item(name, f"{text(record, 'query')}\nAnswer:", choices, index(record, "gold", choices))
    return Item(name, f"Question: {text(record, 'question')}\nAnswer:", *lettered(record))


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


# LAMBADA (Paperno et al. 2016), in OpenAI's form: the last word of a passage.
def _lambada_item(name: str, record: Fields) -> TextItem:
    """Field text, whose last word is predicted; or the fields context and continuation."""
    if "context" in record:
        return TextItem(name, text(record, "context"), f" {text(record, 'continuation')}")
    context, space, word = text(record, "text").rpartition(" ")
    if not context or not word:
        raise DataError(f"field `text` must be two words or more and end in one, not {record['text']!r}")
    return TextItem(name, context, space + word)


# MemoTrap (Liu and Liu 2023): prompts whose right answer is not the one that was often read.
def _memotrap_item(name: str, record: Fields) -> Item:
    """Fields prompt, classes (a list, or one written as a string) and answer_index."""
    choices = texts({"classes": literal(record, "classes")}, "classes")
    return Item(name, text(record, "prompt"), choices, index(record, "answer_index", choices))


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


# RACE (Lai et al. 2017): English examinations for high and middle school.
RACE_LETTERS = "ABCD"


def _race_item(name: str, record: Fields) -> Item:
    """Fields article and problems (question, options, answer of each; a list, or one written as a string).

    The last problem is asked, the others with their answers are part of the prompt, as in lm-eval. A record with the
    fields question, options and answer has one problem.
    """
    problems = literal(record, "problems") if "problems" in record else [record]
    if not isinstance(problems, list) or not problems or not all(isinstance(problem, Mapping) for problem in problems):
        raise DataError(f"field `problems` must be a list of one or more problems, not {problems!r}")
    *shown, last = problems
    query = f"Article: {text(record, 'article')}\n\n{''.join(map(_race_answered, shown))}{text(last, 'question')}"
    return Item(name, query, texts(last, "options", least=4), _race_gold(last))


def _race_answered(problem: Mapping[str, Any]) -> str:
    question, answer = text(problem, "question"), texts(problem, "options", least=4)[_race_gold(problem)]
    if question.endswith("  _  ."):  # a sentence with a gap at its end
        return f"{question[:-5]}{answer}\n"
    return f"Question: {question}\nAnswer: {answer}\n"


def _race_gold(problem: Mapping[str, Any]) -> int:
    answer = text(problem, "answer")
    if len(answer) != 1 or answer not in RACE_LETTERS:
        raise DataError(f"field `answer` must be one of {', '.join(RACE_LETTERS)}, not {answer!r}")
    return RACE_LETTERS.index(answer)


# SQuAD v1.1 (Rajpurkar et al. 2016): the span of a passage that answers a question.
def _squad_item(name: str, record: Fields) -> AnswerItem:
    """Fields title, context, question and answers (with the list text)."""
    title, context, question = (text(record, field) for field in ("title", "context", "question"))
    query = f"Title: {title}\n\nBackground: {context}\n\nQuestion: {question}\n\nAnswer:"
    return AnswerItem(name, query, accepted_answers(block(record, "answers", "the list text"), "text"))


# HotpotQA (Yang et al. 2018), distractor setting: questions that need two of ten paragraphs.
def _hotpotqa_item(name: str, record: Fields) -> AnswerItem:
    """Fields question, answer and context (the lists title and, for each, sentences)."""
    context = block(record, "context", "the lists title and sentences")
    titles, paragraphs = texts(context, "title", least=1), entry(context, "sentences")
    if not isinstance(paragraphs, list) or len(paragraphs) != len(titles) or not all(map(_are_texts, paragraphs)):
        raise DataError(f"field `sentences` must be a list of texts for each of {len(titles)} titles")
    shown = "\n".join(f"{title}: {''.join(part).strip()}" for title, part in zip(titles, paragraphs, strict=True))
    return AnswerItem(name, f"{shown}\nQuestion: {text(record, 'question')}\nAnswer:", ((text(record, "answer"),),))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


# DROP (Dua et al. 2019): questions about a passage that need counting, sorting or arithmetic.
_DROP_FIELDS = "number, spans and date"


def _drop_item(name: str, record: Fields) -> AnswerItem:
    """Fields passage, question, answer (number, spans, date) and validated_answers (a list of each).

    Examples show the answer's text; lm-eval's own task shows the names of its fields there.
    """
    answers = [block(record, "answer", _DROP_FIELDS), *_drop_validated(record)]
    accepted = tuple(spans for spans in dict.fromkeys(map(_drop_spans, answers)) if spans[0].strip())
    if not accepted:
        raise DataError("field `answer` has no number, spans or date")
    return AnswerItem(name, f"{text(record, 'passage')} {text(record, 'question')}", accepted)


def _drop_validated(record: Fields) -> list[Fields]:
    """The other annotators' answers."""
    columns = block(record, "validated_answers", _DROP_FIELDS) if "validated_answers" in record else {}
    lists = [columns.get(field, []) for field in ("number", "spans", "date")]
    if not all(isinstance(part, list) and len(part) == len(lists[0]) for part in lists):
        raise DataError(f"field `validated_answers` must hold lists of one length, not {columns!r}")
    return [{"number": number, "spans": spans, "date": date} for number, spans, date in zip(*lists, strict=True)]


def _drop_spans(answer: Fields) -> tuple[str, ...]:
    if number := string(answer, "number"):
        return (number,)
    spans = entry(answer, "spans")
    if not _are_texts(spans):
        raise DataError(f"field `spans` must be a list of texts, not {spans!r}")
    if spans:
        return tuple(spans)
    date = block(answer, "date", _DROP_FIELDS)
    return (" ".join(string(date, part) for part in ("day", "month", "year")).strip(),)


PASSAGES = 10
"""The first so many are in the prompt, as in In-Context Pretraining (arXiv 2310.10638)."""


def _open_book_reader(query: Callable[[Fields], str]) -> Reader:
    """A reader of records with those of `query`, answers and ctxs (passages with title and text, the best first)."""

    def item(name: str, record: Fields) -> AnswerItem:
        shown = "".join(map(_passage_line, _passages(record)))
        return AnswerItem(name, shown + query(record), accepted_answers(record, "answers"))

    return item


def _passages(record: Fields) -> list[Fields]:
    passages = entry(record, "ctxs")
    if not isinstance(passages, list) or not passages or not all(isinstance(part, Mapping) for part in passages):
        raise DataError(f"field `ctxs` must be a list of one or more passages with title and text, not {passages!r}")
    return passages[:PASSAGES]


def _passage_line(passage: Fields) -> str:
    title = " ".join(string(passage, "title").split()) if "title" in passage else ""
    return (f"{title}: " if title else "") + " ".join(text(passage, "text").split()) + "\n"


# TriviaQA (Joshi et al. 2017), without context and with retrieved passages.
TRIVIAQA_GENERATION = Generation(
    ("\n", ".", ","), "lm_eval", MappingProxyType({"ignore_case": True, "ignore_punctuation": True})
)


def _triviaqa_item(name: str, record: Fields) -> AnswerItem:
    """Fields question and answer (with the list aliases)."""
    answer = block(record, "answer", "the list aliases")
    return AnswerItem(name, _triviaqa_query(record), accepted_answers(answer, "aliases"))


def _triviaqa_query(record: Fields) -> str:
    return f"Question: {text(record, 'question')}?\nAnswer:"


# WebQuestions (Berant et al. 2013): questions that Freebase answers.
def _webqs_item(name: str, record: Fields) -> AnswerItem:
    """Fields question and answers."""
    return AnswerItem(name, f"Question: {text(record, 'question')}\nAnswer:", accepted_answers(record, "answers"))


# Natural Questions with short answers (Lee et al. 2019), without context and with retrieved passages.
NQ_DESCRIPTION = "Answer these questions:\n\n"
NQ_GENERATION = Generation(
    ("\n", ".", ","),
    "lm_eval",
    MappingProxyType(
        {"ignore_case": True, "ignore_punctuation": True, "regexes_to_ignore": [r"\b(?:The |the |An |A |The |a |an )"]}
    ),
)


def _nq_item(name: str, record: Fields) -> AnswerItem:
    """Fields question and answer (a list)."""
    return AnswerItem(name, _nq_query(record), accepted_answers(record, "answer"))


def _nq_query(record: Fields) -> str:
    return f"Q: {text(record, 'question')}?\nA:"


# NQ-Swap (Longpre et al. 2021): questions whose passage was changed, so that it contradicts what a model remembers.
def _nq_swap_item(name: str, record: Fields) -> AnswerItem:
    """Fields question, sub_context (the changed passage) and sub_answer (a list: what the passage now says)."""
    query = f"{text(record, 'sub_context').strip()}\nQuestion: {text(record, 'question')}?\nAnswer:"
    return AnswerItem(name, query, accepted_answers(record, "sub_answer"))


CONTINUATION = "continuation"
"""The task made from held-out text; it needs no files."""


def _as_lm_eval(  # noqa: PLR0917 (the columns of a table)
    name: str, title: str, split: str, item: Reader, hub: Hub, task: str | None = None, form: Generation | None = None
) -> Benchmark:
    """A benchmark with the prompt of lm-eval's task of that name, or of `task`."""
    prompt = BenchmarkPrompt(f"{title} {split}, prompt of lm-eval {task or name}")
    return Benchmark(name, split, item, prompt, hub, form)


def _classification(name: str, split: str, field: str, words: tuple[str, ...], hub: Hub) -> Benchmark:
    source = f"{name} {split}, label words of MetaICL"
    prompt = BenchmarkPrompt(source, target_delimiter="\n", fewshot_delimiter="\n\n\n")
    return Benchmark(name, split, _label_reader(field, words), prompt, hub)


_LINE = Generation(("\n",), "squad")
_COMMONSENSE = (
    _as_lm_eval("boolq", "BoolQ", "validation", _boolq_item, Hub("aps/super_glue", "boolq")),
    _as_lm_eval("hellaswag", "HellaSwag", "validation", _hellaswag_item, Hub("Rowan/hellaswag")),
    _as_lm_eval("openbookqa", "OpenBookQA", "test", _openbookqa_item, Hub("allenai/openbookqa", "main")),
    _as_lm_eval("piqa", "PIQA", "validation", _piqa_item, Hub("baber/piqa")),
    _as_lm_eval("siqa", "Social IQa", "validation", _siqa_item, Hub("lighteval/siqa"), "social_iqa"),
    _as_lm_eval(
        "storycloze",
        "StoryCloze 2016",
        "test",
        _storycloze_item,
        Hub("LSDSem/story_cloze", "2016", train=False),
        "storycloze_2016",
    ),
    _as_lm_eval("winogrande", "Winogrande", "validation", _winogrande_item, Hub("allenai/winogrande", "winogrande_xl")),
    _as_lm_eval("arc_easy", "ARC-Easy", "test", _arc_item, Hub("allenai/ai2_arc", "ARC-Easy")),
    _as_lm_eval("arc_challenge", "ARC-Challenge", "test", _arc_item, Hub("allenai/ai2_arc", "ARC-Challenge")),
    Benchmark(
        "commonsense_qa",
        "validation",
        _commonsense_qa_item,
        BenchmarkPrompt("CommonsenseQA validation, prompt as in the file"),
        Hub("tau/commonsense_qa"),
    ),
    Benchmark(
        "copa",
        "validation",
        _copa_item,
        BenchmarkPrompt("COPA validation, prompt as in the file"),
        Hub("aps/super_glue", "copa"),
    ),
)
_LAMBADA = Benchmark(
    "lambada_openai",
    "test",
    _lambada_item,
    BenchmarkPrompt("LAMBADA test, prompt of lm-eval lambada_openai", target_delimiter=""),
    Hub("EleutherAI/lambada_openai", "default", train=False),
)
_MEMOTRAP = tuple(
    Benchmark(
        f"memotrap_{file}",
        file,
        _memotrap_item,
        BenchmarkPrompt(f"MemoTrap {file}, prompt of lm-eval inverse_scaling_memo_trap", target_delimiter=""),
        parent="memotrap",
        also=("exact_match",),
    )
    for file in ("proverb_ending", "proverb_translation", "hate_speech_ending", "history_of_science")
)
_CLASSIFICATION = (
    _classification("amazon", "test", "content", SENTIMENTS, Hub("fancyzhx/amazon_polarity", examples=MIXED_RECORDS)),
    _classification("sst2", "validation", "sentence", SENTIMENTS, Hub("nyu-mll/glue", "sst2")),
    _classification("yelp", "test", "text", SENTIMENTS, Hub("fancyzhx/yelp_polarity", examples=MIXED_RECORDS)),
    _classification("tweet_hate", "test", "text", HATE, Hub("cardiffnlp/tweet_eval", "hate")),
    _classification("tweet_offensive", "test", "text", OFFENSIVE, Hub("cardiffnlp/tweet_eval", "offensive")),
    _classification("ag_news", "test", "text", TOPICS, Hub("fancyzhx/ag_news")),
    _classification("dbpedia", "test", "content", ONTOLOGY, Hub("fancyzhx/dbpedia_14")),
)
_READING = (
    _as_lm_eval(
        "race_high", "RACE-High", "test", _race_item, Hub("EleutherAI/race", "high", train_path="ehovy/race"), "race"
    ),
    Benchmark(
        "race_middle",
        "test",
        _race_item,
        BenchmarkPrompt("RACE-Middle test, prompt of lm-eval race; on the hub every question is a record of its own"),
        Hub("ehovy/race", "middle"),
    ),
    _as_lm_eval("squad", "SQuAD v1.1", "validation", _squad_item, Hub("rajpurkar/squad"), "squadv2", _LINE),
    Benchmark(
        "hotpotqa",
        "validation",
        _hotpotqa_item,
        BenchmarkPrompt("HotpotQA validation, distractor setting, all paragraphs before the question"),
        Hub("hotpotqa/hotpot_qa", "distractor"),
        _LINE,
    ),
    _as_lm_eval("drop", "DROP", "validation", _drop_item, Hub("EleutherAI/drop"), form=Generation((".",), "drop")),
)
_ANSWERS = (
    Benchmark(
        "triviaqa",
        "validation",
        _triviaqa_item,
        BenchmarkPrompt("TriviaQA validation without context, prompt of lm-eval triviaqa"),
        Hub("mandarjoshi/trivia_qa", "rc.nocontext"),
        TRIVIAQA_GENERATION,
    ),
    Benchmark(
        "webqs",
        "test",
        _webqs_item,
        BenchmarkPrompt("WebQuestions test, prompt of lm-eval webqs, the answer written instead of scored"),
        Hub("stanfordnlp/web_questions"),
        _LINE,
    ),
    Benchmark(
        "nq_open",
        "validation",
        _nq_item,
        BenchmarkPrompt("NQ-open validation, prompt of lm-eval nq_open", " ", "\n", NQ_DESCRIPTION),
        Hub("google-research-datasets/nq_open"),
        NQ_GENERATION,
    ),
    Benchmark(
        "triviaqa_open_book",
        "validation",
        _open_book_reader(_triviaqa_query),
        BenchmarkPrompt("TriviaQA with retrieved passages before the prompt of lm-eval triviaqa"),
        generation=TRIVIAQA_GENERATION,
    ),
    Benchmark(
        "nq_open_book",
        "validation",
        _open_book_reader(_nq_query),
        BenchmarkPrompt(
            "NQ-open with retrieved passages before the prompt of lm-eval nq_open", description=NQ_DESCRIPTION
        ),
        generation=NQ_GENERATION,
    ),
    Benchmark(
        "nq_swap",
        "dev",
        _nq_swap_item,
        BenchmarkPrompt("NQ-Swap, the changed passage before the question"),
        Hub("pminervini/NQ-Swap", train=False),
        _LINE,
    ),
)
BENCHMARKS = MappingProxyType(
    {
        benchmark.name: benchmark
        for benchmark in (*_COMMONSENSE, _LAMBADA, *_MEMOTRAP, *_CLASSIFICATION, *_READING, *_ANSWERS)
    }
)


def task_names() -> list[str]:
    """Every task of ours, `continuation` first."""
    return [CONTINUATION, *BENCHMARKS, *TRANSLATIONS, *SEGMENTATIONS]


def is_ours(name: str) -> bool:
    """True if a task is one of ours."""
    return name in task_names()


def prompted(tasks: tuple[str, ...]) -> list[str]:
    """The tasks whose items are prompts, so that there are examples and shots; the others are lists of files' lines."""
    return [name for name in tasks if name not in TRANSLATIONS and name not in SEGMENTATIONS]
