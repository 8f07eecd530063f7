"""Tensors in safetensors files, whole or in pieces of rows, of which no more is read than is asked for."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self

import torch
from safetensors import SafetensorError, safe_open

from paribus.errors import DataError
from paribus.training.state.pieces import ROWS

AS_NAMED: Mapping[str, tuple[str, int]] = MappingProxyType({})


class _Place(NamedTuple):
    path: Path
    name: str
    """In the file."""
    start: int
    stop: int


@dataclass(frozen=True)
class StoredTensors:
    """The tensors of some files, memory-mapped. DataError names a file that is none of them."""

    places: Mapping[str, tuple[_Place, ...]]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, files: Iterable[Path], parts: Mapping[str, tuple[str, int]] = AS_NAMED) -> Self:
        """Those of `files`, of which each has whole tensors or those that `save_pieces` wrote.

        A whole one that is among `parts` is the rows of the tensor named there, from the row given there on.
        """
        places: dict[str, list[_Place]] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for path in files:
            with _opened(path) as tensors:
                about = json.loads((tensors.metadata() or {}).get(ROWS, "{}"))
                for stored in list(tensors.keys()):
                    shape = tensors.get_slice(stored).get_shape()
                    name, start = parts.get(stored, (stored, about.get(stored, [0])[0]))
                    stop = start + (shape[0] if shape else 1)
                    places.setdefault(name, []).append(_Place(path, stored, start, stop))
                    rows = max(stop, shapes.get(name, (0,))[0]) if shape else 0
                    shapes[name] = tuple(about[stored][1:]) if stored in about else (rows, *shape[1:])[: len(shape)]
        return cls({name: tuple(sorted(found, key=lambda one: one.start)) for name, found in places.items()}, shapes)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of a tensor, from the pieces that have some of them."""
        parts = []
        for place in self.places[name]:
            first, last = max(start, place.start), min(stop, place.stop)
            if first < last:
                with _opened(place.path) as tensors:
                    parts.append(tensors.get_slice(place.name)[first - place.start : last - place.start])
        if sum(len(part) for part in parts) != stop - start:
            raise ValueError(f"{name} has not all rows from {start} to {stop} in its files")
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def whole(self, name: str) -> torch.Tensor:
        """A tensor from all its pieces."""
        if not self.shapes[name]:
            (place,) = self.places[name]
            with _opened(place.path) as tensors:
                scalar: torch.Tensor = tensors.get_tensor(place.name)
            return scalar
        return self.rows(name, 0, self.shapes[name][0])


class Tensors(Protocol):
    """Tensors by their names, each of which is read when it is asked for."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of whole tensors."""

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of a tensor."""

    def whole(self, name: str) -> torch.Tensor:
        """A tensor."""


class Part(NamedTuple):
    """What a tensor that is written is made of: rows of one that is stored, or a whole one where `rows` is None."""

    name: str
    rows: tuple[int, int] | None


def write_whole(path: Path, tensors: Tensors, parts: Mapping[str, Part], metadata: Mapping[str, str]) -> None:
    """Write `parts` of float32 tensors, by their names there, into a safetensors file, one after the other.

    The bytes are those of `safetensors.torch.save_file`, which would hold all of them in memory.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in sorted(parts):
        shape = _shape(tensors, parts[name])
        begin, end = end, end + torch.float32.itemsize * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(parts):
            file.write(_read(tensors, parts[name]).to(torch.float32).contiguous().reshape(-1).numpy().data)


def _shape(tensors: Tensors, part: Part) -> tuple[int, ...]:
    whole = tensors.shapes[part.name]
    return whole if part.rows is None else (part.rows[1] - part.rows[0], *whole[1:])


def _read(tensors: Tensors, part: Part) -> torch.Tensor:
    return tensors.whole(part.name) if part.rows is None else tensors.rows(part.name, *part.rows)


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, "pt")
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
