"""Keys and values of tokens that were read, for those that follow; room for all of them is allotted once."""

from typing import NamedTuple

import torch

from paribus.modeling.decoder.architecture import Architecture


class Past(NamedTuple):
    """What one layer keeps: the same storage as the `Cache` that it is of."""

    keys: torch.Tensor
    """(rows, capacity, heads, width of a head)."""
    values: torch.Tensor
    length: int
    """Tokens that were read before."""

    def extended(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of all tokens, those that are given (rows, length, heads, width) the last."""
        end = self.length + keys.shape[1]
        self.keys[:, self.length : end], self.values[:, self.length : end] = keys, values
        return self.keys[:, :end], self.values[:, :end]


class Cache:
    """Of `rows` rows with room for `capacity` tokens each."""

    def __init__(
        self, architecture: Architecture, rows: int, capacity: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        shape = (architecture.layers, rows, capacity, architecture.heads, architecture.head_width)
        self._keys, self._values = (torch.empty(shape, device=device, dtype=dtype) for _ in range(2))
        self.length = 0
        """Tokens that were read, in each row."""

    def past(self, layer: int) -> Past:
        """What layer number `layer` keeps."""
        return Past(self._keys[layer], self._values[layer], self.length)

    def keep(self, rows: torch.Tensor) -> None:
        """Let go of all rows but `rows`, int64 (n,)."""
        self._keys, self._values = self._keys[:, rows], self._values[:, rows]
