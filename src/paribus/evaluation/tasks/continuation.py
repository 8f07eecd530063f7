"""The `continuation` task: which of four texts follows, made from the held-out part of any corpus.

The wrong choices are continuations of other held-out documents, cut to the same number of characters and as near in
bytes as can be had. Items depend on the texts alone. Examples for prompts are items of documents that are neither
scored nor a choice of a scored item.
"""

from paribus.errors import DataError
from paribus.evaluation.tasks.items import Item, ItemSet
from paribus.evaluation.tasks.passages import Passage, PassageSample

CHOICES = 4
POOL = 64
"""Largest number of items that examples are drawn from; a fifth of the documents where there are fewer."""
SMALLEST_POOL = 8
CANDIDATES = 64
"""Other documents considered for the wrong choices of an item."""
SMALLEST = SMALLEST_POOL + CHOICES


def passage_sample(continuation_items: int, lengths: tuple[int, int]) -> PassageSample:
    """A sample large enough for that many items, their wrong choices and the examples."""
    return PassageSample(continuation_items + CANDIDATES + POOL, lengths)


def continuation_items(sample: PassageSample, largest: int) -> ItemSet:
    """At most `largest` scored items (`evaluation.continuation_items`) and the pool of examples.

    Raises DataError where the held-out part has too few documents.
    """
    passages = sample.passages()
    if len(passages) < SMALLEST:
        raise _too_few(sample.documents, len(passages))
    pool = max(SMALLEST_POOL, min(POOL, len(passages) // 5))
    fewshot, scored = _items(passages[:pool], pool), _items(passages[pool:], largest)
    if not scored or not fewshot:
        raise _too_few(sample.documents, len(passages))
    return ItemSet(scored, fewshot, "items of other held-out documents")


def _too_few(documents: int, usable: int) -> DataError:
    return DataError(
        f"the held-out part has {documents} documents, of which {usable} make a distinct passage; the continuation "
        f"task needs {SMALLEST} or more, and evaluation.continuation_items on top of that for its full number of "
        "items: raise corpus.heldout, take a larger corpus, or leave the task out, as evaluation=heldout does, which "
        "scores held-out text in bits per byte alone"
    )


def _items(passages: list[Passage], largest: int) -> list[Item]:
    """Items of the first `largest` passages that find enough wrong choices among the others."""
    lengths = sorted((len(passage.continuation) for passage in passages), reverse=True)
    longest = lengths[CHOICES - 1]
    items = (_item(passages, i, longest) for i in range(min(largest, len(passages))))
    return [item for item in items if item is not None]


def _item(passages: list[Passage], i: int, longest: int) -> Item | None:
    passage = passages[i]
    true = passage.continuation[:longest]
    wrong = _wrong_choices(passages, i, true)
    if len(wrong) < CHOICES - 1:
        return None
    gold = int(passage.digest[-8:], 16) % CHOICES
    return Item(passage.document, passage.context, (*wrong[:gold], true, *wrong[gold:]), gold)


def _wrong_choices(passages: list[Passage], i: int, true: str) -> list[str]:
    """Choices from the passages after the i-th, cyclically: same kind of split first, then nearest in bytes."""
    passage, size = passages[i], len(true.encode())
    found: dict[str, tuple[bool, int, int]] = {}
    for step in range(1, len(passages)):
        other = passages[(i + step) % len(passages)]
        text = other.continuation[: len(true)]
        if len(text) < len(true) or text == true or other.context == passage.context:
            continue
        found.setdefault(text, (other.spaced != passage.spaced, abs(len(text.encode()) - size), step))
        if len(found) == CANDIDATES:
            break
    return sorted(found, key=found.__getitem__)[: CHOICES - 1]
