"""Static token embeddings: a document is the mean of one stored vector a token (Model2Vec, MinishLab).

Files as Model2Vec writes them: model.safetensors with `embeddings` (V, d), optionally `weights` (a factor a token) and
`mapping` (the row of a token, where tokens share rows), and tokenizer.json. Unknown tokens do not count. What
config.json says of normalization makes no difference here, since every vector gets unit length.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from paribus.errors import DataError, NumericalError
from paribus.ordering.embed.directory import STATIC_TOKENIZER, STATIC_WEIGHTS
from paribus.ordering.embed.unit import unit_rows
from paribus.stage.context import JSON

TOKENS_AT_ONCE = 65_536


class StaticEmbeddings:
    """The static embeddings of a directory."""

    threads = 0

    def __init__(self, directory: Path, max_tokens: int | None = None) -> None:
        """Read vectors and tokenizer; `max_tokens` known tokens of a document, from its start, are averaged.

        Raises DataError, naming the file, where one is missing, unreadable or they do not fit each other, and
        NumericalError for vectors that are not finite.
        """
        self._max_tokens = max_tokens
        self._tokenizer = _read_tokenizer(directory / STATIC_TOKENIZER)
        tokens = max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self.vectors = _token_vectors(directory / STATIC_WEIGHTS, tokens)
        """(tokens, d) float32, a row for each id of the tokenizer."""
        self._unknown = _unknown_token(self._tokenizer)

    def ids(self, texts: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Ids of the known tokens of each text, without special ones."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        known = [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
        if self._unknown is not None:
            known = [ids[ids != self._unknown] for ids in known]
        return [ids[: self._max_tokens] for ids in known]

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors of documents, (n, d) float32; a document without a known token has a row of zeros."""
        sums = [self._sum(ids) for ids in self.ids(texts)]
        return unit_rows(np.array(sums).reshape(len(texts), self.vectors.shape[1]))

    def _sum(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Sum of the tokens' vectors, which has the direction of their mean."""
        total = np.zeros(self.vectors.shape[1])
        for start in range(0, len(ids), TOKENS_AT_ONCE):
            total += self.vectors[ids[start : start + TOKENS_AT_ONCE]].sum(axis=0, dtype=np.float64)
        return total

    def facts(self) -> dict[str, JSON]:
        """Size of the table."""
        return {"kind": "static", "tokens": len(self.vectors)}


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise DataError(
            f"{path}: no readable tokenizer ({error}); `embedder.path` needs one beside {STATIC_WEIGHTS}"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _unknown_token(tokenizer: Tokenizer) -> int | None:
    """Its id; a Unigram model keeps the id, every other the token."""
    model = json.loads(tokenizer.to_str())["model"]
    token = model.get("unk_token")
    unknown: int | None = model.get("unk_id") if token is None else tokenizer.token_to_id(token)
    return unknown


def _token_vectors(path: Path, tokens: int) -> npt.NDArray[np.float32]:
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: no readable safetensors file ({error}); set `embedder.path`") from error
    if "embeddings" not in tensors:
        raise DataError(f"{path}: has no tensor `embeddings` but {', '.join(sorted(tensors))}; set `embedder.path`")
    rows = tensors.get("mapping", np.arange(tokens))[:tokens].astype(np.int64)
    stored = tensors["embeddings"]
    if stored.ndim != 2 or not 0 < tokens == len(rows) or not 0 <= rows.min() <= rows.max() < len(stored):
        raise DataError(
            f"{path}: `embeddings` {stored.shape} with {len(rows)} rows mapped do not cover the {tokens} tokens of "
            f"{STATIC_TOKENIZER}"
        )
    vectors = stored[rows].astype(np.float32)
    if "weights" in tensors:
        vectors = vectors * _weights(path, tensors["weights"], tokens)
    if not np.isfinite(vectors).all():
        raise NumericalError(f"The static embeddings in {path} have vectors that are not finite numbers")
    return vectors


def _weights(path: Path, weights: npt.NDArray[np.floating], tokens: int) -> npt.NDArray[np.float32]:
    if len(weights) < tokens:
        raise DataError(f"{path}: `weights` has {len(weights)} values for {tokens} tokens")
    return weights[:tokens, None].astype(np.float32)
