"""Questions asked after retrieved passages."""

from collections.abc import Mapping

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Record, answers, entry, string, text
from paribus.evaluation.tasks.items import AnswerItem

PASSAGES = 10
"""The first so many are in the prompt, as in In-Context Pretraining (arXiv 2310.10638)."""


def open_book_item(name: str, record: Record, query: str) -> AnswerItem:
    """Fields answers and ctxs (passages with title and text, the best first), as retrievers write them."""
    return AnswerItem(name, passages(record) + query, answers(record, "answers"))


def passages(record: Record) -> str:
    """The first passages of the field `ctxs`, each title and text, a line each."""
    found = entry(record, "ctxs")
    if not isinstance(found, list) or not found or not all(isinstance(passage, Mapping) for passage in found):
        raise DataError(f"field `ctxs` must be a list of one or more passages with title and text, not {found!r}")
    return "".join(f"{_heading(passage)}{_line(text(passage, 'text'))}\n" for passage in found[:PASSAGES])


def _heading(passage: Record) -> str:
    title = _line(string(passage, "title")) if "title" in passage else ""
    return f"{title}: " if title else ""


def _line(content: str) -> str:
    return " ".join(content.split())
