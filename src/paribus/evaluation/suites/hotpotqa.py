"""HotpotQA (Yang et al. 2018), distractor setting: questions that need two of ten paragraphs."""

from collections.abc import Mapping
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Generation, Hub, Record, entry, text, texts
from paribus.evaluation.tasks.items import AnswerItem


def item(name: str, record: Record) -> AnswerItem:
    """Fields question, answer and context (the lists title and, for each, sentences)."""
    context = entry(record, "context")
    if not isinstance(context, Mapping):
        raise DataError(f"field `context` must hold the lists title and sentences, not {context!r}")
    query = f"{_paragraphs(context)}\nQuestion: {text(record, 'question')}\nAnswer:"
    return AnswerItem(name, query, ((text(record, "answer"),),))


def _paragraphs(context: Record) -> str:
    titles, sentences = texts(context, "title", least=1), entry(context, "sentences")
    if not isinstance(sentences, list) or len(sentences) != len(titles) or not all(map(_listed, sentences)):
        raise DataError(f"field `sentences` must be a list of texts for each of {len(titles)} titles")
    return "\n".join(f"{title}: {''.join(part).strip()}" for title, part in zip(titles, sentences, strict=True))


def _listed(sentences: Any) -> bool:
    return isinstance(sentences, list) and all(isinstance(sentence, str) for sentence in sentences)


HOTPOTQA = Benchmark(
    "hotpotqa",
    "validation",
    item,
    BenchmarkPrompt("HotpotQA validation, distractor setting, all paragraphs before the question"),
    Hub("hotpotqa/hotpot_qa", "distractor"),
    Generation(("\n",), "squad"),
)
