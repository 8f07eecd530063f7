"""How often training read each of a sample of the corpus' bytes: what tells which text two trainings have in common."""

from collections.abc import Callable

import numpy as np

from paribus.ordering.contexts.sample import SAMPLED
from paribus.ordering.contexts.text import OrderedText
from paribus.ordering.packing.documents import Integers
from paribus.ordering.packing.pieces import ContextPieces, ranges
from paribus.ordering.seeding import PLACES, seed_sequence

READINGS = "readings.npy"


def sampled_bytes(corpus_bytes: int) -> Integers:
    """Bytes of a corpus of `corpus_bytes` that are looked at, ascending int64; the same for all trainings on it."""
    parts = min(SAMPLED, corpus_bytes)
    edges = np.arange(parts + 1, dtype=np.int64) * corpus_bytes // parts
    generator = np.random.Generator(np.random.PCG64(seed_sequence(PLACES, corpus_bytes)))
    return edges[:-1] + generator.integers(0, np.diff(edges))


def sampled_in(pieces: ContextPieces, text: OrderedText, points: Integers) -> tuple[Integers, Integers]:
    """Which of the bytes `points` of the corpus, ascending, the pieces of contexts hold.

    Numbers of points, and of each the context, 0 to n - 1, both (found,). Bytes of a token are held with it. Tokens are
    read only of documents that have a point.
    """
    documents = text.documents.texts_at(pieces.positions)
    begins, ends = text.corpus_begins[documents], text.corpus_begins[documents + 1]
    kept = np.flatnonzero(np.searchsorted(points, begins) < np.searchsorted(points, ends))
    first, last = text.spans(pieces.positions[kept], pieces.starts[kept], pieces.lengths[kept])
    first, last = np.searchsorted(points, begins[kept] + first), np.searchsorted(points, begins[kept] + last)
    return ranges(first, last), np.repeat(pieces.rows[kept], last - first)


def readings(sampled: Integers, times: Callable[[Integers], Integers], corpus_bytes: int) -> Integers:
    """How often each of `sampled_bytes` was predicted in training that read contexts as often as `times` says, int64.

    `sampled` (found, 2) has the number of a byte and a context that holds it. Of pairs what was read counts too.
    """
    found = np.zeros(min(SAMPLED, corpus_bytes), dtype=np.int64)
    # Of several draws a byte is in a context of each.
    for start in range(0, len(sampled), SAMPLED):
        part = sampled[start : start + SAMPLED]
        np.add.at(found, part[:, 0], times(part[:, 1]))
    return found
