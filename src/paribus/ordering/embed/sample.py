"""The documents that an embedder is fitted on: spread evenly over the corpus, whatever the number of workers."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from paribus.engine import Engine
from paribus.ordering.parts import CorpusPart

Chosen = tuple[CorpusPart, npt.NDArray[np.int64]]


def sample_texts(parts: Sequence[CorpusPart], size: int, max_characters: int, engine: Engine) -> Iterator[str]:
    """The beginnings of `size` documents, document i n / `size` for i in 0, 1, ...; of all n where there are fewer."""
    for texts in engine.map(partial(_read, max_characters), _chosen(parts, size)):
        yield from texts


def _chosen(parts: Sequence[CorpusPart], size: int) -> Iterable[Chosen]:
    count = parts[-1].start + parts[-1].rows
    positions = np.arange(min(size, count)) * count // min(size, count)
    for part in parts:
        first, last = np.searchsorted(positions, [part.start, part.start + part.rows])
        if first < last:
            yield part, positions[first:last] - part.start


def _read(max_characters: int, chosen: Chosen) -> list[str]:
    part, rows = chosen
    texts = part.texts()
    return [texts[row][:max_characters] for row in rows.tolist()]
