"""How often training read each of a sample of the corpus' bytes: what tells which text two trainings have in common."""

import numpy as np

from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import Integers
from paribus.ordering.packing.pieces import CONTEXTS_AT_ONCE, ContextPieces
from paribus.ordering.seeding import PLACES, seed_sequence
from paribus.ordering.traversal.text import OrderedText

READINGS = "readings.npy"
SAMPLED = 2**18
"""Bytes of the corpus that are looked at, one in each of as many equal parts; all of a smaller corpus."""


def sampled_bytes(corpus_bytes: int) -> Integers:
    """Bytes of a corpus of `corpus_bytes` that are looked at, ascending int64; the same for all trainings on it."""
    parts = min(SAMPLED, corpus_bytes)
    edges = np.arange(parts + 1, dtype=np.int64) * corpus_bytes // parts
    generator = np.random.Generator(np.random.PCG64(seed_sequence(PLACES, corpus_bytes)))
    return edges[:-1] + generator.integers(0, np.diff(edges))


def readings(contexts: Contexts, text: OrderedText, times: Integers) -> Integers:
    """How often each of `sampled_bytes` was predicted in training that read context c `times[c]` times, int64.

    Of pairs it counts what was read too. Bytes of a token count as read with it.
    """
    points = sampled_bytes(int(text.corpus_begins[-1]))
    found = np.zeros(len(points) + 1, dtype=np.int64)
    read = np.flatnonzero(times)
    for start in range(0, len(read), CONTEXTS_AT_ONCE):
        chosen = read[start : start + CONTEXTS_AT_ONCE]
        pieces = contexts.predicted(chosen)
        weights = np.repeat(times[chosen], np.diff(pieces.bounds))
        first, last, kept = _covered(pieces, text, points)
        np.add.at(found, first, weights[kept])
        np.subtract.at(found, last, weights[kept])
    return np.cumsum(found[:-1])


def _covered(pieces: ContextPieces, text: OrderedText, points: Integers) -> tuple[Integers, Integers, Integers]:
    """Numbers of the first point in a piece and of the first behind it, and the pieces that this is said of.

    Tokens are read only of documents that have a point.
    """
    documents = text.documents.order[pieces.positions]
    begins, ends = text.corpus_begins[documents], text.corpus_begins[documents + 1]
    kept = np.flatnonzero(np.searchsorted(points, begins) < np.searchsorted(points, ends))
    positions, starts = pieces.positions[kept], pieces.starts[kept]
    first = begins[kept] + text.within(positions, starts)
    last = begins[kept] + text.within(positions, starts + pieces.lengths[kept])
    return np.searchsorted(points, first), np.searchsorted(points, last), kept
