"""Held-out text that bits per byte and statistics are taken of, and the `continuation` task that is made from it.

Held-out documents and pairs are an even sample, as JSON lines. `continuation` asks which of four texts follows. The
wrong choices are continuations of other held-out documents, cut to the same number of characters and as near in bytes
as can be had. Items depend on the texts alone. Examples for prompts are items of documents that are neither scored nor
a choice of a scored item.

Passages are counted in characters, so every tokenizer of a sweep gets the same. A continuation ends at a number of
characters, before the document does: how it ends tells nothing about whether it is the true one.
"""

import heapq
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.items import Item, ItemSet, read_records, text_digest, write_records

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
    write_records(path, ({"id": document, "text": text} for document, text in documents))


def read_heldout(path: Path) -> list[tuple[str, str]]:
    """(id, text) of each document, in corpus order."""
    return [(record["id"], record["text"]) for record in read_records(path)]


@dataclass(frozen=True)
class TextPair:
    """A source and the target that belongs to it."""

    id: str
    source: str
    target: str


def sample_pairs(pairs: Iterable[TextPair], count: int) -> list[TextPair]:
    """The pairs that are scored, whole."""
    return sample_of(pairs, count, lambda pair: text_digest(f"{pair.source}\0{pair.target}") + text_digest(pair.id))


def write_pairs(path: Path, pairs: Iterable[TextPair]) -> None:
    """One pair a line, as JSON with id, source and target."""
    write_records(path, map(asdict, pairs))


def read_pairs(path: Path) -> list[TextPair]:
    return [TextPair(**record) for record in read_records(path)]


SHORTEST_TEXT = 40
"""Shorter documents make no passage (characters)."""
JOINER = "\N{ZERO WIDTH JOINER}"


@dataclass(frozen=True)
class Passage:
    """The beginning of a document, in two parts; at a word boundary the second begins with the whitespace."""

    document: str
    context: str
    continuation: str

    @property
    def digest(self) -> str:
        """Hexadecimal digest of the text; it depends on nothing else."""
        return text_digest(self.context + "\0" + self.continuation)

    @property
    def spaced(self) -> bool:
        """True if the split is at whitespace."""
        return self.continuation[0].isspace()


def cut_passage(document: str, text: str, lengths: tuple[int, int]) -> Passage | None:
    """The passage of a document, or None where the text is too short or its continuation mostly blank.

    `lengths` are the largest numbers of characters of the context and of the continuation.
    """
    longest_context, longest_continuation = lengths
    text = text.strip()
    if len(text) < SHORTEST_TEXT:
        return None
    split = _word_boundary(text, min(longest_context, len(text) * 6 // 10))
    continuation = text[split : split + min(longest_continuation, len(text) * 3 // 10)]
    if 2 * sum(not character.isspace() for character in continuation) < len(continuation):
        return None
    return Passage(document, text[:split], continuation)


def _word_boundary(text: str, target: int) -> int:
    """The last start of whitespace in the second half before `target`, else the character boundary there."""
    for i in range(target, target // 2, -1):
        if text[i].isspace() and not text[i - 1].isspace():
            return i
    return next((i for i in range(target, 1, -1) if _between_characters(text[i - 1], text[i])), min(target, 1))


def _between_characters(before: str, after: str) -> bool:
    """True if text may be cut here: not after a space, and not between a character and its marks or joiner."""
    joined = unicodedata.category(after).startswith("M") or JOINER in (after, before)
    return not joined and not before.isspace()


class PassageSample:
    """The passages of smallest digest, distinct, at most `size`: an even sample in one pass and bounded memory."""

    def __init__(self, size: int, lengths: tuple[int, int]) -> None:
        self.size, self.lengths = size, lengths
        self.documents = 0
        self._passages: dict[str, Passage] = {}

    def add(self, document: str, text: str) -> None:
        """Consider a document; of equal passages the first stays."""
        self.documents += 1
        passage = cut_passage(document, text, self.lengths)
        if passage is None:
            return
        self._passages.setdefault(passage.digest, passage)
        if len(self._passages) > 2 * self.size + 1024:
            self._passages = dict(self._smallest())

    def passages(self) -> list[Passage]:
        """The sample in order of digest."""
        return [passage for _, passage in self._smallest()]

    def _smallest(self) -> list[tuple[str, Passage]]:
        return sorted(self._passages.items())[: self.size]


CHOICES_OF_ITEM = 4
POOL_ITEMS = 64
"""Largest number of items that examples are drawn from; a fifth of the documents where there are fewer."""
SMALLEST_POOL_ITEMS = 8
CANDIDATES = 64
"""Other documents considered for the wrong choices of an item."""
MIN_PASSAGES = SMALLEST_POOL_ITEMS + CHOICES_OF_ITEM


def passage_sample(continuation_items: int, lengths: tuple[int, int]) -> PassageSample:
    """A sample large enough for that many items, their wrong choices and the examples."""
    return PassageSample(continuation_items + CANDIDATES + POOL_ITEMS, lengths)


def continuation_items(sample: PassageSample, largest: int) -> ItemSet:
    """The scored items, at most `largest` (`evaluation.continuation_items`), and the pool of examples.

    Raises DataError where the held-out part has too few documents.
    """
    passages = sample.passages()
    if len(passages) < MIN_PASSAGES:
        raise _too_few(sample.documents, len(passages))
    pool = max(SMALLEST_POOL_ITEMS, min(POOL_ITEMS, len(passages) // 5))
    fewshot, scored = _passage_items(passages[:pool], pool), _passage_items(passages[pool:], largest)
    if not scored or not fewshot:
        raise _too_few(sample.documents, len(passages))
    return ItemSet(scored, fewshot, "items of other held-out documents")


def _too_few(documents: int, usable: int) -> DataError:
    return DataError(
        f"the held-out part has {documents} documents, of which {usable} make a distinct passage; the continuation "
        f"task needs {MIN_PASSAGES} or more, and evaluation.continuation_items on top of that for its full number of "
        "items: raise corpus.heldout, take a larger corpus, or leave the task out, as evaluation=heldout does, which "
        "scores held-out text in bits per byte alone"
    )


def _passage_items(passages: list[Passage], largest: int) -> list[Item]:
    """Items of the first `largest` passages that find enough wrong choices among the others."""
    lengths = sorted((len(passage.continuation) for passage in passages), reverse=True)
    longest = lengths[CHOICES_OF_ITEM - 1]
    items = (_passage_item(passages, i, longest) for i in range(min(largest, len(passages))))
    return [item for item in items if item is not None]


def _passage_item(passages: list[Passage], i: int, longest: int) -> Item | None:
    passage = passages[i]
    true = passage.continuation[:longest]
    wrong = _wrong_choices(passages, i, true)
    if len(wrong) < CHOICES_OF_ITEM - 1:
        return None
    gold = int(passage.digest[-8:], 16) % CHOICES_OF_ITEM
    return Item(passage.document, passage.context, (*wrong[:gold], true, *wrong[gold:]), gold)


def _wrong_choices(passages: list[Passage], i: int, true: str) -> list[str]:
    """Choices from the passages after the i-th, cyclically: same kind of split first, then nearest in bytes."""
    passage, size = passages[i], len(true.encode())
    candidates: dict[str, tuple[bool, int, int]] = {}
    for step in range(1, len(passages)):
        other = passages[(i + step) % len(passages)]
        text = other.continuation[: len(true)]
        if len(text) < len(true) or text == true or other.context == passage.context:
            continue
        candidates.setdefault(text, (other.spaced != passage.spaced, abs(len(text.encode()) - size), step))
        if len(candidates) == CANDIDATES:
            break
    return sorted(candidates, key=candidates.__getitem__)[: CHOICES_OF_ITEM - 1]
