"""What each token of the expanded vocabulary becomes in the end: itself, or the normal tokens of a scaffold.

Scaffold-BPE, equation 6: a scaffold token is replaced by its parents, recursively, down to the first normal tokens.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from paribus.tokenization.vocabulary.vocabulary import SPECIAL, Vocabulary

Demolish = Literal["parents", "shortest"]


def child_sequences(vocabulary: Vocabulary, demolish: Demolish) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Dense ids that stand for each rank, flat, and their offsets (n + 1).

    `parents` is equation 6, `shortest` the fewest normal tokens.
    """
    ids = vocabulary.columns.ids
    scaffolds = np.flatnonzero(ids < 0).tolist()
    if not scaffolds:
        return np.arange(len(ids) + 1, dtype=np.int64), ids
    replaced = _shortest(vocabulary, scaffolds) if demolish == "shortest" else _by_parents(vocabulary, scaffolds)
    lengths = np.ones(len(ids), dtype=np.int64)
    lengths[scaffolds] = [len(replaced[rank]) for rank in scaffolds]
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    flat = np.empty(offsets[-1], dtype=np.int32)
    flat[offsets[:-1][ids >= 0]] = ids[ids >= 0]
    for rank in scaffolds:
        flat[offsets[rank] : offsets[rank + 1]] = replaced[rank]
    return offsets, flat


def _by_parents(vocabulary: Vocabulary, scaffolds: list[int]) -> dict[int, tuple[int, ...]]:
    ids, parents = vocabulary.columns.ids, vocabulary.columns.parents
    replaced: dict[int, tuple[int, ...]] = {}
    for rank in scaffolds:
        left, right = parents[rank].tolist()
        replaced[rank] = sum((replaced.get(side) or (int(ids[side]),) for side in (left, right)), ())
    return replaced


def _shortest(vocabulary: Vocabulary, scaffolds: list[int]) -> dict[int, tuple[int, ...]]:
    from paribus.tokenization.encode.unit_sequences import unit_sequences, unit_table

    columns = vocabulary.columns
    ranks = np.flatnonzero(columns.kinds != SPECIAL)
    flat, offsets = unit_sequences(vocabulary, unit_table(vocabulary), ranks)
    units = flat.tolist()
    spelled = {
        rank: tuple(units[begin:end])
        for rank, begin, end in zip(ranks.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    }
    normal = {spelled[rank]: int(columns.ids[rank]) for rank in ranks.tolist() if columns.ids[rank] >= 0}
    return {rank: fewest(spelled[rank], normal) for rank in scaffolds}


def fewest(units: tuple[int, ...], normal: dict[tuple[int, ...], int]) -> tuple[int, ...]:
    """Ids of the fewest tokens that make up `units`; among equally few, the longest first token, and so on."""
    best: list[tuple[int, ...]] = [()] * (len(units) + 1)
    for start in range(len(units) - 1, -1, -1):
        options = [
            (normal[units[start:end]], *best[end])
            for end in range(len(units), start, -1)
            if units[start:end] in normal and (best[end] or end == len(units))
        ]
        best[start] = min(options, key=len)
    return best[0]
