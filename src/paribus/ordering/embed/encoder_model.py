"""The weights of a `transformers` encoder on one device. Imports torch: import this module late."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModel

from paribus.modeling.batching.batch_memory import BatchMemory
from paribus.modeling.batching.batches import batches

Chunk = list[int]


class EncoderModel:
    """Turns chunks of token ids into vectors; one thread at a time."""

    def __init__(self, directory: Path, device: torch.device, precision: str, pooling: str) -> None:
        """Weights are float32, or bfloat16 where that is the precision; code in `directory` is never run."""
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        local = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
        model: Any = AutoModel.from_pretrained(str(directory), dtype=kind, **local)
        self._model = model.to(device).eval()
        self._device, self._pooling = device, pooling
        self.config: Any = model.config
        self.parameters = sum(parameter.numel() for parameter in model.parameters())

    def pooled(self, chunks: Sequence[Chunk], batch_tokens: int) -> npt.NDArray[np.float64]:
        """(chunks, hidden size); the longest are computed first, so that a batch needs little padding."""
        by_length = sorted(range(len(chunks)), key=lambda chunk: -len(chunks[chunk]))
        vectors = np.zeros((len(chunks), int(self.config.hidden_size)))
        memory = BatchMemory("an encoder", "embedder.max_tokens")
        with _one_thread(self._device):
            for part in batches(by_length, lambda chunk: len(chunks[chunk]), batch_tokens):
                for some, found in memory.computed(lambda places: self._batch([chunks[p] for p in places]), part):
                    vectors[list(some)] = found
        return vectors

    @torch.inference_mode()
    def _batch(self, batch: Sequence[Chunk]) -> npt.NDArray[np.float64]:
        ids = torch.zeros((len(batch), len(batch[0])), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, chunk in enumerate(batch):
            ids[row, : len(chunk)] = torch.tensor(chunk)
            mask[row, : len(chunk)] = 1
        mask = mask.to(self._device)
        states = self._model(input_ids=ids.to(self._device), attention_mask=mask).last_hidden_state.float()
        if self._pooling == "cls":
            pooled = states[:, 0]
        else:
            pooled = (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return np.asarray(pooled.double().cpu().numpy())


@contextmanager
def _one_thread(device: torch.device) -> Iterator[None]:
    """One thread of this process's share of the CPU: with more, the last bits would depend on their number."""
    if device.type != "cpu":
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
