"""Text to token ids and back, by a vocabulary, a pre-tokenizer and an encoder; all that `export` needs."""

import dataclasses
import json
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError, ParibusError, is_full_disk
from paribus.tokenization.arguments import listed_texts, one_text, token_ids
from paribus.tokenization.encode import Encoding, Ids
from paribus.tokenization.predictive import PredictiveEntropySpans
from paribus.tokenization.pretokenize import PATTERNS, BertWords, Pretokenizer, SentencePieceText
from paribus.tokenization.settings import Candidates, EncoderName, Settings, read, read_tokenizer_json, write
from paribus.tokenization.spans import SpanPretokenizer
from paribus.tokenization.vocabulary import SPECIAL, UNKNOWN, Demolish, Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa


_UNKNOWN_TEXT = "\ufffd".encode()
DROPOUT = 0.1
"""Probability of the paper (Provilkov et al. 2020)."""
PRETOKENIZER = "pretokenizer.json"


class TextTokenizer:
    """Text to ids and back: the part of a `Tokenizer` that works on text."""

    def __init__(self, vocabulary: Vocabulary, settings: Settings, cutter: Pretokenizer | None = None) -> None:
        self.vocabulary = vocabulary
        """Every token ever made, in order of creation, scaffolds and special tokens included."""
        self.settings = settings
        self.cutter = cutter
        """A pre-tokenizer that was made from data; None for one by pattern."""
        if (cutter is None) != (settings.pretokenizer in PATTERNS):
            needed = "needs an object made from data" if cutter is None else "is a pattern and takes no object"
            raise ConfigurationError(f"pretokenizer: {settings.pretokenizer} {needed}")
        self._encoding = Encoding(vocabulary, settings, cutter)

    def __len__(self) -> int:
        """`vocab_size`."""
        return self.vocab_size

    def __repr__(self) -> str:
        settings = self.settings
        described = f"algorithm={settings.algorithm!r}, vocab_size={self.vocab_size}, encoder={settings.encoder!r}"
        return f"{type(self).__name__}({described})"

    def encode(self, text: str) -> Ids:
        """Token ids of `text` in [0, vocab_size), shape (n,), int32.

        DataError for text that has no UTF-8, TypeError for what is no string.
        """
        return self._encoding.encode(text if type(text) is str else one_text(text, "encode"))

    def encode_bytes(self, data: bytes) -> Ids:
        """Ids of bytes that need not be UTF-8; each byte that is no part of UTF-8 counts as one character.

        `decode_bytes` gives the bytes back. Raises ConfigurationError for character units and for pre-tokenizers made
        from data, which read characters.
        """
        if self.vocabulary.unit == "character" or self.cutter is not None:
            raise ConfigurationError(
                "bytes that are no text need byte units and a pre-tokenizer by pattern, "
                f"not unit={self.vocabulary.unit} and pretokenizer={self.settings.pretokenizer}"
            )
        return self._encoding.encode_bytes(data)

    def encode_batch(self, texts: Iterable[str], *, threads: int = 1) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Flat token ids (int32) of n texts and their offsets (int64, n + 1); the same for any number of threads.

        TypeError for a single string, and for a text that is none.
        """
        return self._encoding.encode_batch(listed_texts(texts, "encode_batch"), threads)

    def encode_arrow(self, texts: "pa.StringArray | pa.LargeStringArray") -> tuple[Ids, npt.NDArray[np.int64]]:
        """`encode_batch` of an Arrow array; with a pre-tokenizer by pattern no Python strings are made.

        DataError for an array of another type than string or large_string, a chunked array, or one with nulls.
        """
        return self._encoding.encode_arrow(texts)

    def tokenize(self, text: str) -> list[bytes]:
        """The bytes of each token, U+FFFD for an unknown one; joined, they are the UTF-8 of the text.

        Where a pre-tokenizer changes text (`stripped`, `bert`, `sentencepiece`), they are those of what it makes of it.
        """
        spellings = self._spellings
        return [spellings[token_id] for token_id in self.encode(text).tolist()]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; bytes that are no UTF-8 become U+FFFD.

        DataError for an id outside [0, vocab_size), TypeError for anything but whole numbers in one dimension.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that token ids stand for. Raises as `decode`."""
        listed = token_ids(ids, self.vocab_size)
        spellings = self._spaced_spellings
        joined = b"".join([spellings[token_id] for token_id in listed.tolist()])
        return joined[1:] if self.begins_with_space and joined.startswith(b" ") else joined

    @property
    def begins_with_space(self) -> bool:
        """True if the tokens of a text begin with a space that was added to it, which decoding removes."""
        return self.settings.spaced or (isinstance(self.cutter, SentencePieceText) and self.cutter.prefix)

    def with_encoder(
        self,
        encoder: EncoderName,
        *,
        candidates: Candidates = "normal",
        demolish: Demolish | None = None,
        dropout: float = DROPOUT,
        seed: int = 0,
    ) -> Self:
        """Copy with another encoder for the vocabulary; `dropout` and `seed` are for BPE-dropout alone.

        Raises ConfigurationError where the vocabulary cannot serve the encoder.
        """
        settings = dataclasses.replace(
            self.settings,
            encoder=encoder,
            candidates=candidates,
            demolish=demolish or self.settings.demolish,
            dropout=dropout if encoder == "dropout" else 0.0,
            seed=seed if encoder == "dropout" else 0,
        )
        return type(self)(self.vocabulary, settings, self.cutter)

    @property
    def vocab_size(self) -> int:
        """N: rows of the embedding table, units and special tokens included, scaffolds not."""
        return self.vocabulary.size

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Merge rules in training order."""
        spellings = self.vocabulary.columns.spellings
        return [(spellings[left], spellings[right]) for left, right, _ in self.vocabulary.merges]

    @property
    def special_tokens(self) -> dict[str, int]:
        """Id of each special token, in the order they were given."""
        columns = self.vocabulary.columns
        ids = {
            columns.spellings[rank].decode("utf-8"): int(columns.ids[rank])
            for rank in np.flatnonzero(columns.kinds == SPECIAL).tolist()
        }
        return {name: ids[name] for name in self.settings.special_tokens}

    @property
    def eos_id(self) -> int:
        """Id of the first special token, which ends a document. ConfigurationError where there is none."""
        if not self.settings.special_tokens:
            raise ConfigurationError("tokenizer.special_tokens is empty: no token ends a document")
        return self.special_tokens[self.settings.special_tokens[0]]

    def token_byte_lengths(self) -> npt.NDArray[np.int64]:
        """UTF-8 bytes each token stands for, shape (vocab_size,); 0 for special and unknown tokens."""
        columns, ranks = self.vocabulary.columns, self.vocabulary.rank_of_id
        lengths = np.fromiter(map(len, columns.spellings), dtype=np.int64, count=len(columns.spellings))
        return np.where(np.isin(columns.kinds, (SPECIAL, UNKNOWN)), 0, lengths)[ranks]

    def token_bytes(self) -> list[bytes]:
        """The bytes each id stands for in text, as `decode_bytes` joins them; empty for special tokens.

        An unknown token stands for U+FFFD. Where whitespace is lost, a token that begins a word has a space before it.
        """
        special = set(self.special_tokens.values())
        return [b"" if token_id in special else text for token_id, text in enumerate(self._spaced_spellings)]

    def save(self, path: str | Path) -> None:
        """Write a self-contained directory of JSON; equal tokenizers make equal bytes.

        DataError where no directory can be made: `path` is a file, lies below one, or permissions forbid it.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if is_full_disk(error):  # no fault of the path
                raise
            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            message = f"{path}: no directory can be made there ({why}); name another for Tokenizer.save"
            raise DataError(message) from error
        write(self.vocabulary, self.settings, path)
        if self.cutter is not None:
            state = json.dumps(self.cutter.to_state(), ensure_ascii=False, indent=1, sort_keys=True)
            (path / PRETOKENIZER).write_text(state + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu") -> Self:
        """Read a directory written by `save`. DataError where it is missing, incomplete or contradicts itself.

        `device` (auto, cpu, cuda, cuda:N) is where the language model of `predictive_entropy` computes; no other
        pre-tokenizer has one.
        """
        vocabulary, settings = read(Path(path))
        readers: dict[str, Callable[[Any], Pretokenizer]] = {
            "spans": SpanPretokenizer.from_state,
            "predictive_entropy": partial(PredictiveEntropySpans.from_state, device=device),
            "sentencepiece": SentencePieceText.from_state,
            "bert": BertWords.from_state,
        }
        cutter, state = None, Path(path) / PRETOKENIZER
        if settings.pretokenizer not in PATTERNS:
            try:
                cutter = readers[settings.pretokenizer](read_tokenizer_json(state))
            except ParibusError as error:
                raise DataError(f"{state}: {error}") from error
        return cls(vocabulary, settings, cutter)

    @cached_property
    def _spellings(self) -> list[bytes]:
        columns, kinds = self.vocabulary.columns, self.vocabulary.columns.kinds
        return [
            _UNKNOWN_TEXT if kinds[rank] == UNKNOWN else columns.spellings[rank]
            for rank in self.vocabulary.rank_of_id.tolist()
        ]

    @cached_property
    def _spaced_spellings(self) -> list[bytes]:
        """`_spellings`; where whitespace is lost, with a space before every token that begins a word."""
        if not self.settings.spaced:
            return self._spellings
        inside_word = self.vocabulary.columns.continuations[self.vocabulary.rank_of_id].tolist()
        return [
            spelling if inside else b" " + spelling
            for spelling, inside in zip(self._spellings, inside_word, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "settings": self.settings, "cutter": self.cutter}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["vocabulary"], state["settings"], state["cutter"])  # type: ignore[misc]
