"""A `transformers` encoder over chunks of a document, as Contriever (Izacard et al., 2022) does it.

In-Context Pretraining's released configuration: a document is the mean of up to 10 chunks of 510 tokens.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModel, AutoTokenizer

from paribus.config.groups.embedding import MiniLMEmbedder, TransformersEmbedder
from paribus.errors import ConfigurationError, NumericalError
from paribus.modeling.device import resolve_device
from paribus.ordering.embed.layout import read_layout
from paribus.ordering.embed.unit import unit_rows
from paribus.stage.context import JSON

Batch = tuple[list[int], list[list[int]]]


class DocumentEncoder:
    """The encoder of a directory; code in that directory is never run."""

    def __init__(self, directory: Path, config: TransformersEmbedder | MiniLMEmbedder) -> None:
        """Load weights and tokenizer.

        Raises DataError if the directory is not an encoder's, and ConfigurationError if it asks for what paribus does
        not compute or cannot take chunks of `config.max_tokens`.
        """
        self._config, self._path = config, directory
        pooling = config.pooling if isinstance(config, TransformersEmbedder) else "auto"
        self.layout = read_layout(directory, pooling)
        local = {"local_files_only": True, "trust_remote_code": False}
        self._device = resolve_device(config.device, "embedder.device")
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(self.layout.directory), **local)
        model: Any = AutoModel.from_pretrained(
            str(self.layout.directory), dtype=torch.float32, use_safetensors=True, **local
        )
        self._model = model.to(self._device).eval()
        self._special_tokens = len(self.tokenizer("")["input_ids"])
        self._check_length()

    def _check_length(self) -> None:
        positions = getattr(self._model.config, "max_position_embeddings", None)
        if positions is not None and self._config.max_tokens + self._special_tokens > positions:
            raise ConfigurationError(
                f"`embedder.max_tokens` = {self._config.max_tokens} and {self._special_tokens} special tokens "
                f"are more than the {positions} positions of the encoder in {self._path}: "
                f"set it to {positions - self._special_tokens} or less"
            )
        if not self.tokenizer.is_fast:
            raise ConfigurationError(
                f"`embedder.path` = {self._path} has no tokenizer.json; an encoder with a fast "
                "tokenizer is needed to cut documents into chunks"
            )

    @property
    def exclusive(self) -> bool:
        """Whether it runs on a GPU."""
        return self._device.type == "cuda"

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self._model.config.hidden_size)

    def facts(self) -> dict[str, JSON]:
        """Kind, size and pooling."""
        return {
            "kind": self._config.kind,
            "pooling": self.layout.pooling,
            "parameters": sum(parameter.numel() for parameter in self._model.parameters()),
            "device": self._device.type,
        }

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors of documents, (n, hidden size) float32; a document without a token has a row of zeros.

        A chunk is the mean of its last hidden states over tokens, or the state of its first one, as the layout says; a
        document is the mean of its chunks. Raises NumericalError if a vector is not finite.
        """
        owners, chunks = self._chunks([text.lower() for text in texts] if self.layout.lowercase else list(texts))
        return unit_rows(self.sums(len(texts), owners, chunks))

    def sums(self, rows: int, owners: list[int], chunks: list[list[int]]) -> npt.NDArray[np.float64]:
        """Pooled `chunks` of token ids, special ones included, added up in the rows that own them, (rows, d)."""
        sums = np.zeros((rows, self.dimensions))
        with _one_thread():
            for targets, batch in self._batches(owners, chunks):
                np.add.at(sums, targets, self._pooled(batch))
        if not np.isfinite(sums).all():
            raise NumericalError(f"The encoder in {self._path} gives vectors that are not finite numbers")
        return sums

    def _chunks(self, texts: list[str]) -> tuple[list[int], list[list[int]]]:
        encoded = self.tokenizer(
            texts,
            truncation=True,
            max_length=self._config.max_tokens + self._special_tokens,
            return_overflowing_tokens=True,
            verbose=False,
        )
        owners: list[int] = []
        chunks: list[list[int]] = []
        for owner, ids in zip(encoded["overflow_to_sample_mapping"], encoded["input_ids"], strict=True):
            full = owners[-self._config.max_chunks :].count(owner) == self._config.max_chunks
            if len(ids) > self._special_tokens and not full:
                owners.append(owner)
                chunks.append(ids)
        return owners, chunks

    def _batches(self, owners: list[int], chunks: list[list[int]]) -> Iterator[Batch]:
        """Longest chunks first, so that a batch needs little padding."""
        by_length = sorted(range(len(chunks)), key=lambda chunk: -len(chunks[chunk]))
        for start in range(0, len(chunks), self._config.batch_size):
            part = by_length[start : start + self._config.batch_size]
            yield [owners[chunk] for chunk in part], [chunks[chunk] for chunk in part]

    def _pooled(self, batch: list[list[int]]) -> npt.NDArray[np.float64]:
        ids = torch.zeros((len(batch), len(batch[0])), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, chunk in enumerate(batch):
            ids[row, : len(chunk)] = torch.tensor(chunk)
            mask[row, : len(chunk)] = 1
        mask = mask.to(self._device)
        with torch.inference_mode():
            states = self._model(input_ids=ids.to(self._device), attention_mask=mask).last_hidden_state
            if self.layout.pooling == "cls":
                pooled = states[:, 0]
            else:
                pooled = (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return np.asarray(pooled.double().cpu().numpy())


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread of this process's share of the CPU: with more, the last bits would depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
