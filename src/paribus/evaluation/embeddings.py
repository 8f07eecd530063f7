"""Uniformity of the token embeddings of a checkpoint, how evenly they fill their space, and a flat picture of them.

Uniformity is that of Wang and Isola 2020 (arXiv 2005.10242, equation 2): log E exp(-2 |x - y|^2) over pairs of
different unit vectors. It is 0 where all point one way, and falls as they spread. Frequent and rare tokens lie apart in
models of text (FRAGE: Gong et al. 2018, arXiv 1809.06858), so classes of frequency are measured apart, and shown in a
projection.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import safe_open

from paribus.errors import DataError
from paribus.modeling.architecture import WEIGHTS
from paribus.stage import JSON, StageContext
from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import ordinary_tokens

TABLE, UNIFORMITY = "embeddings.parquet", "embeddings/uniformity"
INPUT, OUTPUT = "input", "output"
CLASSES = ("frequent", "medium", "rare")
"""Thirds of the used tokens by how often they occur."""
SAMPLE = 8_192
"""Vectors whose pairs are all taken; of more, so many are drawn."""
_BLOCK = 1_024
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        INPUT: ("model.embed_tokens.weight", "gpt_neox.embed_in.weight", "model.shared.weight"),
        OUTPUT: ("lm_head.weight", "embed_out.weight"),
    }
)
"""Names of the embeddings in each model family; tied output embeddings are not written."""
SCHEMA = pa.schema(
    [("id", pa.int32()), ("count", pa.int64()), ("class", pa.string()), ("x", pa.float32()), ("y", pa.float32())]
)

Vectors = NDArray[np.float32]
Counts = NDArray[np.int64]


def frequency_classes(counts: Counts, ordinary: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
    """Ids of each third of the used tokens, the most frequent first, then of the `unused` ones, which do not occur.

    `ordinary` (vocab_size,) says of which tokens; of equal counts the smaller id comes first.
    """
    used = np.flatnonzero(ordinary & (counts > 0))
    order = used[np.argsort(-counts[used], kind="stable")]
    thirds = zip(CLASSES, np.array_split(order, len(CLASSES)), strict=True)
    return {**dict(thirds), "unused": np.flatnonzero(ordinary & (counts == 0))}


def read_embeddings(checkpoint: Path) -> dict[str, Vectors]:
    """Embeddings of a checkpoint (vocab_size, width): `input`, and `output` where they are others.

    Only these tensors are read. DataError where the checkpoint has none under a known name.
    """
    with safe_open(checkpoint / WEIGHTS, framework="numpy") as file:
        names = set(file.keys())
        stored = {side: name for side, known in _NAMES.items() for name in known if name in names}
        if INPUT not in stored:
            raise DataError(f"{checkpoint / WEIGHTS} has no input embeddings; known names: {', '.join(_NAMES[INPUT])}")
        return {side: np.asarray(file.get_tensor(name), dtype=np.float32) for side, name in stored.items()}


def uniformity(vectors: Vectors) -> float | None:
    """Uniformity of vectors (n, width), brought to unit length; None for fewer than two.

    Of more than 8,192 vectors as many are drawn without replacement, with a fixed seed; all their pairs are taken.
    """
    if len(vectors) > SAMPLE:
        chosen = np.random.default_rng(0).choice(len(vectors), SAMPLE, replace=False)
        vectors = vectors[np.sort(chosen)]
    if len(vectors) < 2:
        return None
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    total = 0.0
    for start in range(0, len(unit), _BLOCK):
        # For unit vectors |x - y|^2 = 2 - 2 x.y.
        cosines = np.clip(unit[start : start + _BLOCK] @ unit.T, -1, 1)
        total += float(np.exp(4 * cosines.astype(np.float64) - 4).sum())
    pairs = len(unit) * (len(unit) - 1)
    return float(np.log(max(total - len(unit), np.finfo(np.float64).tiny) / pairs))


def projection(vectors: Vectors, used: NDArray[np.int64]) -> Vectors:
    """Two coordinates of each vector (n, 2): its first two principal components, of the used tokens about their mean.

    They are right singular vectors of the centred matrix, each with its largest entry above zero.
    """
    centred = vectors - vectors[used].mean(axis=0)
    _, axes = np.linalg.eigh((centred[used].T @ centred[used]).astype(np.float64))
    first = axes[:, ::-1][:, :2]
    signs = np.sign(first[np.abs(first).argmax(axis=0), range(first.shape[1])])
    projected: Vectors = centred @ (first * signs).astype(np.float32)
    return projected


def measure_embeddings(
    context: StageContext, checkpoint: Path, step: int, tokenizer: Tokenizer, counts: Counts
) -> JSON:
    """Statistics of a checkpoint's embeddings for `statistics.json`; writes `embeddings.parquet` and reports metrics.

    `counts`, shape (vocab_size,), are how often each token occurs in the held-out text. None, and no table, where fewer
    than two tokens do.
    """
    classes = frequency_classes(counts, ordinary_tokens(tokenizer))
    used = np.concatenate([classes[name] for name in CLASSES])
    if len(used) < 2:
        return None
    embeddings = read_embeddings(checkpoint)
    # A line a token of text: the classes after each other, the most frequent token first, those unused last.
    ids = np.concatenate(list(classes.values()))
    names = [name for name, group in classes.items() for _ in range(len(group))]
    x, y = projection(embeddings[INPUT], used)[ids].T
    table = pa.table([pa.array(ids, pa.int32()), counts[ids], names, x, y], schema=SCHEMA)
    pq.write_table(table, context.output / TABLE, compression="zstd")
    by_side: dict[str, JSON] = {}
    for side, vectors in embeddings.items():
        values = {name: uniformity(vectors[ids]) for name, ids in {"used": used, **classes}.items()}
        by_side[side] = {**values}
        for name, value in values.items():
            if side == INPUT and value is not None:
                context.listener.metric(UNIFORMITY + ("" if name == "used" else f"_{name}"), value, step=step)
    sizes: dict[str, JSON] = {"used": len(used), "unused": len(classes["unused"])}
    return {"checkpoint": step, "tokens": sizes, "uniformity": by_side}
