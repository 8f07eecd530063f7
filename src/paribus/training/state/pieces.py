"""Pieces of tensors, each some rows of one, in safetensors files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file

ROWS = "rows"
"""In the metadata of a file of pieces: by name the first row of each, and the shape of the whole."""


class Piece(NamedTuple):
    """Consecutive rows of a tensor, the first dimension; a whole one begins at row 0."""

    tensor: torch.Tensor
    start: int
    shape: tuple[int, ...]
    """Of the whole."""


def save_pieces(path: Path, pieces: Mapping[str, Piece]) -> None:
    """Write pieces, contiguous and on the CPU, into a file."""
    about = {name: [piece.start, *piece.shape] for name, piece in pieces.items()}
    save_file({name: piece.tensor for name, piece in pieces.items()}, path, {ROWS: json.dumps(about)})
