"""Entropy of a causal language model's next token, position by position. Imports torch: import this module late."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModelForCausalLM

from paribus.errors import DataError, NumericalError
from paribus.modeling.device import resolve_device

Reals = npt.NDArray[np.float64]

_BATCH_TOKENS: Mapping[str, int] = MappingProxyType({"cpu": 2**11, "cuda": 2**14})
"""Positions of a batch by type of device; the distributions of one over 21,128 characters take 1.4 GB on a GPU."""
_SHORTEST = 16
_ROWS = 512
"""Positions whose distributions are in memory at once."""
_NO_LIMIT = 1024
"""Context of models that name none."""


class CausalLanguageModel:
    """A model in a local Hugging Face directory, in float32; only safetensors files are read and no code of theirs.

    `device` is auto, cpu, cuda or cuda:N. Sequences of like length are a batch, larger on a GPU. Raises DataError where
    the directory holds no such model, ConfigurationError for a device that is not there.
    """

    def __init__(self, directory: Path, device: str) -> None:
        self._device = resolve_device(device, "pretokenizer.device")
        try:
            model = AutoModelForCausalLM.from_pretrained(
                directory, dtype=torch.float32, use_safetensors=True, local_files_only=True
            )
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{directory}: no causal language model that can be loaded ({error})") from error
        self._model: Any = model.to(self._device).eval()
        self._directory = directory
        self.context_length: int = getattr(model.config, "max_position_embeddings", None) or _NO_LIMIT
        self.vocab_size: int = model.config.vocab_size

    def entropies(self, sequences: Sequence[Sequence[int]]) -> list[Reals]:
        """Shannon entropy (bits) of the distribution after each id, an array of the length of each sequence.

        What is longer than the model's context is read in windows that move on by half of it, so that every position
        has half a context before it. Raises DataError for an id that the model does not have.
        """
        results = [np.zeros(len(sequence)) for sequence in sequences]
        for length, windows in self._windows(sequences).items():
            rows = max(1, _BATCH_TOKENS[self._device.type] // length)
            for at in range(0, len(windows), rows):
                self._fill(results, sequences, windows[at : at + rows], length)
        return results

    def _windows(self, sequences: Sequence[Sequence[int]]) -> dict[int, list[tuple[int, int]]]:
        """Padded length -> (sequence, first position) of the windows of that length."""
        by_length: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        step = max(1, self.context_length // 2)
        for number, sequence in enumerate(sequences):
            if sequence and not 0 <= min(sequence) <= max(sequence) < self.vocab_size:
                raise DataError(f"{self._directory}: the tokenizer has ids that the model of {self.vocab_size} has not")
            last = max(0, len(sequence) - self.context_length)
            for start in range(0, last + step, step) if sequence else ():
                length = min(self.context_length, len(sequence) - start)
                padded = min(self.context_length, max(_SHORTEST, 1 << (length - 1).bit_length()))
                by_length[padded].append((number, start))
        return by_length

    def _fill(
        self, results: list[Reals], sequences: Sequence[Sequence[int]], windows: list[tuple[int, int]], length: int
    ) -> None:
        ids = torch.zeros((len(windows), length), dtype=torch.long)
        for row, (number, start) in enumerate(windows):
            window = sequences[number][start : start + length]
            ids[row, : len(window)] = torch.tensor(window)
        computed = self._computed(ids)
        for row, (number, start) in enumerate(windows):
            seen = self.context_length // 2 if start else 0
            part = results[number][start : start + length]
            part[seen:] = computed[row, seen : len(part)]

    @torch.inference_mode()
    def _computed(self, ids: torch.Tensor) -> Reals:
        logits = self._model(input_ids=ids.to(self._device), use_cache=False).logits
        parts = [_entropy(part) for part in logits.flatten(0, 1).split(_ROWS)]
        entropies: Reals = torch.cat(parts).view(ids.shape).double().cpu().numpy()
        if not np.isfinite(entropies).all():
            raise NumericalError(f"{self._directory}: the model's distributions are not finite")
        return entropies


def _entropy(logits: torch.Tensor) -> torch.Tensor:
    logarithms = torch.log_softmax(logits.float(), dim=-1)
    entropy: torch.Tensor = -(logarithms.exp() * logarithms).sum(dim=-1) / math.log(2)
    return entropy
