"""The held-out text that bits per byte and statistics are taken of: an even sample of documents, as JSON lines."""

import heapq
import json
from collections.abc import Callable, Iterable
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.tasks.passages import text_digest

HELDOUT = "heldout.jsonl"
T = TypeVar("T")


def sample_of(texts: Iterable[T], count: int, digest: Callable[[T], str]) -> list[T]:
    """`count` of `texts`, those of smallest digest, in their sequence; one pass, memory for `count` of them."""
    smallest = heapq.nsmallest(count, enumerate(texts), key=lambda numbered: digest(numbered[1]))
    return [text for _, text in sorted(smallest, key=itemgetter(0))]


def sample_documents(documents: Iterable[tuple[str, str]], config: EvaluationConfig) -> list[tuple[str, str]]:
    """The documents (id, text) that are scored, each cut to `evaluation.document_bytes` at a character."""
    chosen = sample_of(documents, config.heldout_documents, lambda document: text_digest(document[1]))
    return [(document, text.encode()[: config.document_bytes].decode(errors="ignore")) for document, text in chosen]


def write_heldout(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """One document (id, text) a line, as JSON."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for document, text in documents:
            file.write(json.dumps({"id": document, "text": text}, ensure_ascii=False) + "\n")


def read_heldout(path: Path) -> list[tuple[str, str]]:
    """(id, text) of each document, in corpus order."""
    with path.open(encoding="utf-8", newline="\n") as file:
        records = [json.loads(line) for line in file]
    return [(record["id"], record["text"]) for record in records]
