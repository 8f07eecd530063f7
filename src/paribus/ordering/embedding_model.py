"""Embeddings by a `transformers` encoder over chunks of a document, as Contriever (Izacard et al., 2022) makes them.

Imports torch: import this module late.
"""

import queue
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

from paribus.config.groups.ordering import MiniLMEmbedder, TransformersEmbedder
from paribus.errors import ConfigurationError, NumericalError
from paribus.modeling.device import BatchMemory, batches, expect_many_shapes, resolve_device, set_products, usable_gpus
from paribus.ordering.arrays import unit_rows
from paribus.ordering.embedding_files import read_layout
from paribus.stage import JSON

THREADS_A_GPU = 3
"""Threads a GPU: one computes while the others read and tokenize."""
Chunk = list[int]


class EmbeddingModel:
    """The encoder of a directory; code in that directory is never run. Several threads may embed at once.

    In-Context Pretraining's released configuration: a document is the mean of up to 10 chunks of 510 tokens.
    """

    def __init__(self, directory: Path, config: TransformersEmbedder | MiniLMEmbedder) -> None:
        """Load weights, onto every device, and tokenizer.

        Raises DataError if the directory is not an encoder's, and ConfigurationError if it asks for what paribus does
        not compute or cannot take chunks of `config.max_tokens`.
        """
        self._config, self._path = config, directory
        pooling = config.pooling if isinstance(config, TransformersEmbedder) else "auto"
        self.layout = read_layout(directory, pooling)
        self._devices = _devices(config.device)
        set_products(config.precision, self._devices[0], "embedder.precision")
        expect_many_shapes()
        local = {"local_files_only": True, "trust_remote_code": False}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(self.layout.directory), **local)
        models = [
            EncoderModel(self.layout.directory, device, config.precision, self.layout.pooling)
            for device in self._devices
        ]
        self._about = models[0]
        self._free: queue.SimpleQueue[EncoderModel] = queue.SimpleQueue()
        for model in models:
            self._free.put(model)
        special = self._special_tokens = len(self.tokenizer("")["input_ids"])
        positions = getattr(self._about.config, "max_position_embeddings", None)
        if positions is not None and config.max_tokens + special > positions:
            raise ConfigurationError(
                f"`embedder.max_tokens` = {config.max_tokens} and {special} special tokens are more than the "
                f"{positions} positions of the encoder in {directory}: set it to {positions - special} or less"
            )
        if not self.tokenizer.is_fast:
            raise ConfigurationError(
                f"`embedder.path` = {directory} has no tokenizer.json; an encoder with a fast tokenizer is needed to "
                "cut documents into chunks"
            )
        # Set to cut texts: to be told so with every call, as transformers does, threads cannot share.
        self._chunker = Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())
        self._chunker.no_padding()
        self._chunker.enable_truncation(config.max_tokens + special, direction=self.tokenizer.truncation_side)

    @property
    def threads(self) -> int:
        """How many threads of one process should embed at once: more than one where it runs on GPUs, else 0."""
        return THREADS_A_GPU * len(self._devices) if self._devices[0].type == "cuda" else 0

    def facts(self) -> dict[str, JSON]:
        """Kind, size and pooling."""
        return {
            "kind": self._config.kind,
            "pooling": self.layout.pooling,
            "parameters": self._about.parameters,
            "device": self._devices[0].type,
        }

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors of documents, (n, hidden size) float32; a document without a token has a row of zeros.

        A chunk is the mean of its last hidden states over tokens, or the state of its first one, as the layout says; a
        document is the mean of its chunks. Raises NumericalError if a vector is not finite.
        """
        owners, chunks = self._chunks([text.lower() for text in texts] if self.layout.lowercase else list(texts))
        sums = np.zeros((len(texts), int(self._about.config.hidden_size)))
        model = self._free.get()
        try:
            np.add.at(sums, owners, model.pooled(chunks, self._config.batch_tokens))
        finally:
            self._free.put(model)
        if not np.isfinite(sums).all():
            raise NumericalError(f"The encoder in {self._path} gives vectors that are not finite numbers")
        return unit_rows(sums)

    def _chunks(self, texts: list[str]) -> tuple[list[int], list[list[int]]]:
        owners: list[int] = []
        chunks: list[list[int]] = []
        for owner, encoding in enumerate(self._chunker.encode_batch_fast(texts)):
            parts = [part.ids for part in (encoding, *encoding.overflowing) if len(part.ids) > self._special_tokens]
            chunks += parts[: self._config.max_chunks]
            owners += [owner] * min(len(parts), self._config.max_chunks)
        return owners, chunks


def _devices(device: str) -> list[torch.device]:
    """The one that is meant, or all GPUs where none of them is named."""
    resolved = resolve_device(device, "embedder.device")
    if resolved.type != "cuda" or ":" in device:
        return [resolved]
    return [torch.device("cuda", number) for number in range(usable_gpus())]


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
        threads = torch.get_num_threads()
        if self._device.type == "cpu":  # with more than one, the last bits would depend on their number
            torch.set_num_threads(1)
        try:
            for part in batches(by_length, lambda chunk: len(chunks[chunk]), batch_tokens):
                for some, means in memory.computed(lambda places: self._batch([chunks[p] for p in places]), part):
                    vectors[list(some)] = means
        finally:
            if self._device.type == "cpu":
                torch.set_num_threads(threads)
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
