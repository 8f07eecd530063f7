"""Tensors in safetensors files, whole or in pieces of rows, and the rows that a process has of those that FSDP2 shares.

No more is read than is asked for.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor, Shard

from paribus.errors import DataError

AS_NAMED: Mapping[str, tuple[str, int]] = MappingProxyType({})


class _StoredPlace(NamedTuple):
    path: Path
    name: str
    """Name in the file."""
    start: int
    stop: int


@dataclass(frozen=True)
class StoredTensors:
    """The tensors of some files, memory-mapped. DataError names a file that is none of them."""

    places: Mapping[str, tuple[_StoredPlace, ...]]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, files: Iterable[Path], parts: Mapping[str, tuple[str, int]] = AS_NAMED) -> Self:
        """Tensors of `files`, of which each has whole tensors or those that `save_pieces` wrote.

        A whole one that is among `parts` is the rows of the tensor named there, from the row given there on.
        """
        places: dict[str, list[_StoredPlace]] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for path in files:
            with _open_tensors(path) as tensors:
                about = json.loads((tensors.metadata() or {}).get(ROWS, "{}"))
                for stored in list(tensors.keys()):
                    shape = tensors.get_slice(stored).get_shape()
                    name, start = parts.get(stored, (stored, about.get(stored, [0])[0]))
                    stop = start + (shape[0] if shape else 1)
                    places.setdefault(name, []).append(_StoredPlace(path, stored, start, stop))
                    rows = max(stop, shapes.get(name, (0,))[0]) if shape else 0
                    shapes[name] = tuple(about[stored][1:]) if stored in about else (rows, *shape[1:])[: len(shape)]
        return cls(
            {name: tuple(sorted(pieces, key=lambda piece: piece.start)) for name, pieces in places.items()}, shapes
        )

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of a tensor, from the pieces that have some of them."""
        parts = []
        for place in self.places[name]:
            first, last = max(start, place.start), min(stop, place.stop)
            if first < last:
                with _open_tensors(place.path) as tensors:
                    parts.append(tensors.get_slice(place.name)[first - place.start : last - place.start])
        if sum(len(part) for part in parts) != stop - start:
            raise ValueError(f"{name} has not all rows from {start} to {stop} in its files")
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def whole(self, name: str) -> torch.Tensor:
        """A tensor from all its pieces."""
        if not self.shapes[name]:
            (place,) = self.places[name]
            with _open_tensors(place.path) as tensors:
                scalar: torch.Tensor = tensors.get_tensor(place.name)
            return scalar
        return self.rows(name, 0, self.shapes[name][0])


class Part(NamedTuple):
    """Source of a tensor that is written: rows of one that is stored, or a whole one where `rows` is None."""

    name: str
    rows: tuple[int, int] | None


def write_whole(path: Path, tensors: StoredTensors, parts: Mapping[str, Part], metadata: Mapping[str, str]) -> None:
    """Write `parts` of float32 tensors, by their names there, into a safetensors file, one after the other.

    The bytes are those of `safetensors.torch.save_file`, which would hold all of them in memory.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in sorted(parts):
        part = parts[name]
        shape = tensors.shapes[part.name]
        if part.rows is not None:
            shape = (part.rows[1] - part.rows[0], *shape[1:])
        begin, end = end, end + torch.float32.itemsize * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(parts):
            part = parts[name]
            tensor = tensors.whole(part.name) if part.rows is None else tensors.rows(part.name, *part.rows)
            file.write(tensor.to(torch.float32).contiguous().reshape(-1).numpy().data)


def _open_tensors(path: Path) -> Any:
    try:
        return safe_open(path, "pt")
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


ROWS = "rows"
"""Key in the metadata of a file of pieces: by name the first row of each, and the shape of the whole."""


class Piece(NamedTuple):
    """Consecutive rows of a tensor, the first dimension; a whole one begins at row 0."""

    tensor: torch.Tensor
    start: int
    shape: tuple[int, ...]
    """Shape of the whole."""


def save_pieces(path: Path, pieces: Mapping[str, Piece]) -> None:
    """Write pieces, contiguous and on the CPU, into a file."""
    about = {name: [piece.start, *piece.shape] for name, piece in pieces.items()}
    save_file({name: piece.tensor for name, piece in pieces.items()}, path, {ROWS: json.dumps(about)})


class WeightSource(Protocol):
    """Source of the weights of a model."""

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of the parameter `name`, float32 on the CPU."""


def is_empty(module: torch.nn.Module) -> bool:
    """True if the parameters of a module are on `meta`."""
    return any(parameter.is_meta for parameter in module.parameters())


def local_rows(tensor: DTensor) -> tuple[int, int]:
    """First row of this process and the one after its last; FSDP2 gives all but the last ones equally many."""
    mesh, dimension = tensor.device_mesh, _sharded_dimension(tensor)
    each = -(-tensor.shape[0] // mesh.size(dimension))
    start = min(mesh.get_local_rank(dimension) * each, tensor.shape[0])
    return start, start + tensor.to_local().shape[0]


def is_first_replica(tensor: DTensor) -> bool:
    """True if this process writes its rows, of all that have the same."""
    sharded = _sharded_dimension(tensor)
    replicated = (dimension for dimension in range(tensor.device_mesh.ndim) if dimension != sharded)
    return all(tensor.device_mesh.get_local_rank(dimension) == 0 for dimension in replicated)


def _sharded_dimension(tensor: DTensor) -> int:
    (dimension,) = (number for number, placement in enumerate(tensor.placements) if placement == Shard(0))
    return dimension


def placed(stored: StoredTensors, name: str, like: torch.Tensor) -> torch.Tensor:
    """A stored tensor, of which no more is read than this process' rows of `like` where that has its shape."""
    if not isinstance(like, DTensor) or stored.shapes[name] != tuple(like.shape):
        return stored.whole(name)
    start, stop = local_rows(like)
    local = stored.rows(name, start, stop) if start < stop else torch.empty(0, *like.shape[1:])
    sharded: torch.Tensor = DTensor.from_local(
        local.to(like.device),
        like.device_mesh,
        like.placements,
        run_check=False,
        shape=like.shape,
        stride=like.stride(),
    )
    return sharded


def load_weights(model: Any, source: WeightSource) -> None:
    """Fill the parameters of a model, each process the rows that it has."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            start, stop = local_rows(parameter) if isinstance(parameter, DTensor) else (0, parameter.shape[0])
            if start < stop:
                target = parameter.to_local() if isinstance(parameter, DTensor) else parameter
                target.copy_(source.rows(name, start, stop))
