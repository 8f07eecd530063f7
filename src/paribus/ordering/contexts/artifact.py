"""The artefact `contexts`: arrays with an entry a context, memory-mapped, and how large the text is.

`text_bytes.npy`, `targets.npy`, `places.npy` and `ends.npy` (int64, contexts) and `sampled.npy` (int64, found × 2) are
those of `Measured`; `contexts.json` has what they must agree with. Where a packing assigned pieces of documents to
contexts, which takes minutes where there are many, the pieces are there too: `positions.npy`, `starts.npy`,
`lengths.npy` and `bounds.npy` (int64), as `ContextPieces` has them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from paribus.errors import DataError
from paribus.ordering.arrays import map_array, save_array
from paribus.ordering.contexts.measure import ARRAYS, MeasuredContexts
from paribus.ordering.packing.assigned import AssignedContexts
from paribus.ordering.packing.documents import OrderedDocuments
from paribus.ordering.packing.pieces import ContextPieces
from paribus.store import files

SUMMARY = "contexts.json"
COUNT, SIZES = "contexts", ("context_length", "ordered_bytes", "corpus_bytes")
NUMBERS = (COUNT, "left_out_tokens", *SIZES)
PIECES = ("positions", "starts", "lengths", "bounds")


def array_path(directory: Path, name: str) -> Path:
    """The file of an array of `Measured`."""
    return directory / f"{name}.npy"


def write_summary(directory: Path, **sizes: int) -> None:
    """Write what the arrays must agree with: a number for each of `NUMBERS`."""
    files.write_json(directory / SUMMARY, sizes)


def write_pieces(directory: Path, pieces: ContextPieces) -> None:
    """Write the pieces of all contexts."""
    for name in PIECES:
        save_array(array_path(directory, name), getattr(pieces, name))


def has_pieces(path: Path) -> bool:
    """Whether the artefact has the pieces of its contexts."""
    return array_path(path, PIECES[0]).exists()


def read_assigned(path: Path, documents: OrderedDocuments, context_length: int) -> AssignedContexts:
    """The contexts that the pieces in the artefact make of `documents`, memory-mapped.

    DataError where its files are cut short or disagree.
    """
    sizes = _sizes(path / SUMMARY)
    bounds = _map(array_path(path, "bounds"), sizes[COUNT] + 1)
    positions, starts, lengths = (_map(array_path(path, name), int(bounds[-1])) for name in PIECES[:-1])
    return AssignedContexts(documents, context_length, ContextPieces(positions, starts, lengths, bounds))


def read_contexts(path: Path) -> MeasuredContexts:
    """Measurements of the contexts of the artefact in directory `path`, memory-mapped.

    DataError where its files are cut short or disagree.
    """
    sizes = _sizes(path / SUMMARY)
    found: dict[str, Any] = {name: _map(array_path(path, name), sizes[COUNT]) for name in ARRAYS}
    return MeasuredContexts(**found | {name: sizes[name] for name in SIZES})


def _sizes(file: Path) -> dict[str, int]:
    try:
        sizes = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no readable sizes of contexts ({error})") from error
    missing = [name for name in NUMBERS if not isinstance(sizes, dict) or not isinstance(sizes.get(name), int)]
    if missing:
        raise DataError(f"{file}: has no whole number for {', '.join(missing)}")
    return dict(sizes)


def _map(file: Path, count: int) -> Any:
    """The array of `count` integers, or of pairs of them."""
    try:
        array = map_array(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no readable array of contexts ({error})") from error
    right = array.shape[1:] == (2,) if file.stem == "sampled" else array.shape == (count,)
    if not right or array.dtype != np.int64:
        raise DataError(f"{file}: is {array.dtype} {array.shape}, but there must be {count} of int64")
    return array
