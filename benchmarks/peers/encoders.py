"""Every tokenizer behind the same two calls: a list of texts to one array of ids, and one text to its ids.

Each is imported when it is built. All but sentencepiece serve the vocabulary that paribus trained.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peers.text import SEPARATOR

Ids = npt.NDArray[np.integer[Any]]
_BATCH = 1000
"""Documents a call, for peers that return an object for each document."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """`batch` takes what `prepare` made of the texts; preparing is not measured and mostly does nothing."""

    batch: Callable[[Any], Ids]
    one: Callable[[str], Sequence[int] | Ids]
    decode: Callable[[Ids], str] | None = None
    prepare: Callable[[list[str]], Any] = list


def paribus(vocabularies: Path, threads: int, vocabulary: str, encoder: str, **options: float) -> Encoder:
    """`encode_batch` of a vocabulary with an encoder and its options."""
    from paribus.tokenization import Tokenizer

    tokenizer = Tokenizer.load(vocabularies / vocabulary)
    if encoder != tokenizer.settings.encoder:
        tokenizer = tokenizer.with_encoder(encoder, **options)  # type: ignore[arg-type]
    return Encoder(lambda texts: tokenizer.encode_batch(texts, threads=threads)[0], tokenizer.encode, tokenizer.decode)


def tokenizers(vocabularies: Path, threads: int, dropout: float | None = None) -> Encoder:
    """`encode_batch_fast`, which makes no offsets."""
    import tokenizers as peer

    tokenizer = peer.Tokenizer.from_file(str(vocabularies / "tokenizer.json"))
    if dropout is not None:
        tokenizer.model.dropout = dropout

    def batch(texts: list[str]) -> Ids:
        parts = (tokenizer.encode_batch_fast(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH))
        return _joined(np.array(item.ids, dtype=np.uint32) for item in chain.from_iterable(parts))

    return Encoder(batch, lambda text: tokenizer.encode(text).ids, lambda ids: tokenizer.decode(ids.tolist()))


def tiktoken(vocabularies: Path, threads: int) -> Encoder:
    """Straight to arrays on one core; `encode_ordinary_batch` on more."""
    import tiktoken as peer
    from tiktoken_ext.openai_public import r50k_pat_str

    lines = (vocabularies / "vocabulary.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    encoding = peer.Encoding("paribus", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens={})

    def batch(texts: list[str]) -> Ids:
        if threads == 1:
            return _joined(encoding.encode_to_numpy(text, disallowed_special=()) for text in texts)
        parts = encoding.encode_ordinary_batch(texts, num_threads=threads)
        return _joined(np.array(part, dtype=np.uint32) for part in parts)

    return Encoder(batch, encoding.encode_ordinary)


def fastokens(vocabularies: Path, threads: int) -> Encoder:
    """`encode_batch_flat`, its way to one buffer of ids."""
    import fastokens as peer

    tokenizer = peer.Tokenizer.from_file(str(vocabularies / "tokenizer.json"))
    return Encoder(
        lambda texts: np.frombuffer(tokenizer.encode_batch_flat(texts)[0], dtype=np.uint32),
        lambda text: tokenizer.encode(text).ids,
    )


def gigatoken(vocabularies: Path, threads: int, buffer: bool = False) -> Encoder:
    """`encode_batch` of the texts, or of one buffer that holds them all with a separator between them."""
    import awkward
    import gigatoken as peer

    tokenizer = peer.Tokenizer(vocabularies / "tokenizer.json")

    def batch(texts: Any) -> Ids:
        return np.asarray(awkward.flatten(tokenizer.encode_batch(texts, parallel=threads > 1)))

    def joined(texts: list[str]) -> Any:
        return peer.BytesSource(SEPARATOR.join(texts).encode(), SEPARATOR)

    return Encoder(batch, tokenizer.encode, prepare=joined if buffer else list)


def sentencepiece(vocabularies: Path, threads: int, model: str) -> Encoder:
    """`encode` to arrays; its own vocabulary, which knows no pre-tokens."""
    import sentencepiece as peer

    processor = peer.SentencePieceProcessor(model_file=str(vocabularies / f"sentencepiece.{model}"))
    return Encoder(
        lambda texts: _joined(processor.encode(texts, out_type="numpy", num_threads=threads)),
        processor.encode,
    )


def _joined(parts: Iterable[Ids]) -> Ids:
    return np.concatenate(list(parts))
