"""A local `transformers` encoder by mean pooling, as Contriever (Izacard et al., 2022) does it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModel, AutoTokenizer

from paribus.config.groups.ordering import TransformersEmbedder
from paribus.errors import ConfigurationError, NumericalError
from paribus.ordering.embed.unit import unit_rows
from paribus.ordering.fingerprint import encoder_directory

Batch = tuple[list[int], list[list[int]]]
DOCUMENTS_A_BLOCK = 64


class MeanPoolingEncoder:
    """The encoder of a local directory; code in that directory is never run."""

    def __init__(self, config: TransformersEmbedder) -> None:
        """Load weights and tokenizer.

        Raises DataError if the directory is not there or not an encoder's, and ConfigurationError if it cannot take
        chunks of `config.max_tokens`.
        """
        directory = str(encoder_directory(config))
        local = {"local_files_only": True, "trust_remote_code": False}
        self._config = config
        self._device = torch.device(_device(config.device))
        self._tokenizer: Any = AutoTokenizer.from_pretrained(directory, **local)
        model: Any = AutoModel.from_pretrained(directory, dtype=torch.float32, **local)
        self._model = model.to(self._device).eval()
        self._special_tokens = len(self._tokenizer("")["input_ids"])
        self._check_length()

    def _check_length(self) -> None:
        positions = getattr(self._model.config, "max_position_embeddings", None)
        if positions is not None and self._config.max_tokens + self._special_tokens > positions:
            raise ConfigurationError(
                f"`ordering.embedder.max_tokens` = {self._config.max_tokens} and {self._special_tokens} special tokens "
                f"are more than the {positions} positions of the encoder in {self._config.path}: "
                f"set it to {positions - self._special_tokens} or less"
            )
        if not self._tokenizer.is_fast:
            raise ConfigurationError(
                f"`ordering.embedder.path` = {self._config.path} has no tokenizer.json; an encoder with a fast "
                "tokenizer is needed to cut documents into chunks"
            )

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors of documents, (n, hidden size) float32.

        A chunk is the mean of its last hidden states over tokens, a document the mean of its chunks.
        Raises NumericalError if a vector is not finite.
        """
        owners, chunks = self._chunks(texts)
        sums = np.zeros((len(texts), self._model.config.hidden_size))
        for rows, batch in self._batches(owners, chunks):
            np.add.at(sums, rows, self._pooled(batch))
        if not np.isfinite(sums).all():
            raise NumericalError(f"The encoder in {self._config.path} gives vectors that are not finite numbers")
        return unit_rows(sums)

    def _chunks(self, texts: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        encoded = self._tokenizer(
            list(texts),
            truncation=True,
            max_length=self._config.max_tokens + self._special_tokens,
            return_overflowing_tokens=True,
            verbose=False,
        )
        owners: list[int] = []
        chunks: list[list[int]] = []
        for owner, ids in zip(encoded["overflow_to_sample_mapping"], encoded["input_ids"], strict=True):
            if ids and owners[-self._config.max_chunks :].count(owner) < self._config.max_chunks:
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
            means = (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return np.asarray(means.double().cpu().numpy())


def embed_resumably(
    texts: Iterator[str], count: int, config: TransformersEmbedder, work: Path
) -> Iterator[npt.NDArray[np.float32]]:
    """Embeddings of `count` documents block by block; blocks that `work` holds already are not computed again."""
    encoder = MeanPoolingEncoder(config)
    for start in range(0, count, DOCUMENTS_A_BLOCK):
        block = [next(texts) for _ in range(min(DOCUMENTS_A_BLOCK, count - start))]
        path = work / f"embeddings_{start:012d}.npy"
        if not path.exists():
            partial = path.with_suffix(".partial")
            with partial.open("wb") as file:
                np.save(file, encoder.embed(block), allow_pickle=False)
            partial.replace(path)
        yield np.load(path, allow_pickle=False)


def _device(name: str) -> str:
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"
