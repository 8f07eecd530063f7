"""Stage contexts and artefacts of the ordering stages on a small corpus."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import (
    ClusterOrdering,
    InContextOrdering,
    InContextReleasedOrdering,
    LexicalOrdering,
    NearestOrdering,
    NeighboursConfig,
    NoDuplicates,
    OrderingConfig,
    SequentialOrdering,
    StandardOrdering,
    TfidfEmbedder,
)
from paribus.ordering.arrays import write_neighbours
from paribus.ordering.embeddings import EmbeddingsWriter
from paribus.stage import StageContext
from support.run_config import run_config
from support.stages import context_at

IN_CONTEXT = InContextOrdering(neighbours=5)
GROUPS: dict[str, Any] = {
    "embedder": TfidfEmbedder(dimensions=64),
    "neighbours": NeighboursConfig(retrieved=10),
    "duplicates": NoDuplicates(),
    "model": LlamaModel(width=8, layers=1, heads=1, ffn_width=8),
}
ORDERINGS: list[OrderingConfig] = [
    StandardOrdering(),
    SequentialOrdering(),
    NearestOrdering(neighbours=3),
    ClusterOrdering(),
    InContextOrdering(neighbours=4),
    LexicalOrdering(neighbours=4),
    InContextReleasedOrdering(neighbours=4, chain=5),
]
"""One of every kind."""
TOPICS = ["matrix vector rank", "whale sea ship", "bread yeast oven", "court law judge", "star orbit planet"]


def topics(count: int) -> list[str]:
    """Documents about the five topics in turn, no two of them equal."""
    return [
        f"{TOPICS[i % 5]} {TOPICS[i % 5].split()[i // 5 % 3]} number{i} common words of every document"
        for i in range(count)
    ]


def formula_vectors(documents: int = 200, dimensions: int = 8) -> npt.NDArray[np.float32]:
    """Unit vectors from a formula, the last quarter a copy of the first, so that pins do not depend on an embedder."""
    grid = (np.arange(documents * dimensions) ** 2 * 7919 % 10007 / 5003 - 1).reshape(documents, dimensions)
    grid[documents * 3 // 4 :] = grid[: documents - documents * 3 // 4]
    unit: npt.NDArray[np.float32] = (grid / np.linalg.norm(grid, axis=1, keepdims=True)).astype(np.float32)
    return unit


def all_neighbours(vectors: npt.NDArray[np.floating], count: int) -> tuple[list[list[int]], list[list[float]]]:
    """Ids and cosines of the nearest documents of each, of equal ones the smaller first, slowly; -1 and 0 for none."""
    ids, cosines = [], []
    for i, vector in enumerate(vectors):
        similar = (vectors.astype(np.float64) @ vector.astype(np.float64)).round(6).tolist()
        others = [j for j in range(len(vectors)) if j != i and vector.any() and vectors[j].any()]
        nearest = sorted(others, key=lambda j: (-similar[j], j))[:count]
        ids.append(nearest + [-1] * (count - len(nearest)))
        cosines.append([similar[j] for j in nearest] + [0.0] * (count - len(nearest)))
    return ids, cosines


def write_lists(directory: Path, vectors: npt.NDArray[np.floating], count: int) -> Path:
    """A neighbours artefact of what `all_neighbours` finds."""
    directory.mkdir()
    ids, cosines = all_neighbours(vectors, count)
    write_neighbours(directory, np.array(ids), np.array(cosines))
    return directory


def digest(*arrays: npt.NDArray[Any]) -> str:
    """The first 16 digits of the SHA-256 of the arrays' bytes."""
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:16]


def ordering_context(
    root: Path,
    stage: str,
    ordering: OrderingConfig = IN_CONTEXT,
    *,
    groups: Mapping[str, Any] = GROUPS,
    seed: int = 0,
    workers: int = 1,
    **inputs: Path,
) -> StageContext:
    """A context that writes to `root`/`stage` and works in `root`/`stage`.work.

    `groups` are configuration groups that are not those of `GROUPS`.
    """
    config = run_config(ordering=ordering, seed=seed, **{**GROUPS, **groups})
    return context_at(root / stage, root / f"{stage}.work", config, inputs, workers=workers)


def write_embeddings(directory: Path, vectors: npt.NDArray[np.floating], *, rows: int = 1000) -> Path:
    """An embeddings artefact of `vectors`, (n, d), scaled to unit rows, in shards of `rows`; rows of zeros stay."""
    directory.mkdir(parents=True, exist_ok=True)
    writer = EmbeddingsWriter(directory)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths != 0).astype(np.float16)
    for number, start in enumerate(range(0, len(unit), rows)):
        path = directory / f"part_{number}.npy"
        np.save(path, unit[start : start + rows])
        writer.add([path])
        path.unlink()
    writer.close()
    return directory
