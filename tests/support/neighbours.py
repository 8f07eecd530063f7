"""Vectors about topics, and the search for their neighbours."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import NeighboursConfig
from paribus.engine.local import LocalEngine
from paribus.ordering.arrays import unit_rows
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.neighbours import NeighbourSearch, recall_of
from paribus.ordering.search_plan import SearchPlan
from support.orders import write_embeddings

Vectors = npt.NDArray[np.float32]
Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


def clustered(count: int, dimensions: int = 24, seed: int = 0) -> Vectors:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(12, dimensions))
    return unit_rows(centres[generator.integers(0, 12, count)] + 0.4 * generator.normal(size=(count, dimensions)))


def search(
    root: Path, vectors: Vectors, *, workers: int = 1, **settings: object
) -> tuple[Embeddings, SearchPlan, Found, float | None]:
    """Embeddings as they were stored, the plan, all lists, and the share of the sample's neighbours that were found."""
    embeddings = Embeddings(write_embeddings(root / "embeddings", vectors))
    (root / "work").mkdir(exist_ok=True)
    config = NeighboursConfig(**settings)  # type: ignore[arg-type]
    plan, blocks, sample = NeighbourSearch(
        embeddings, config, LocalEngine(workers), root / "work", lambda *_: None
    ).run()
    parts = list(zip(*map(blocks.read, range(blocks.count)), strict=True))
    found = (np.concatenate(parts[0]), np.concatenate(parts[1]))
    truth = list(zip(*map(sample.blocks.read, range(sample.blocks.count)), strict=True))
    share = None
    if truth:
        width = sample.blocks.width
        some = (found[0][sample.documents][:, :width], found[1][sample.documents][:, :width])
        share = recall_of(some, (np.concatenate(truth[0]), np.concatenate(truth[1])))
    return embeddings, plan, found, share
