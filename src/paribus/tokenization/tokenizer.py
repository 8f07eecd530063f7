"""`Tokenizer`: a vocabulary, a pre-tokenizer and an encoder."""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.tokenization.arguments import (
    listed_texts,
    names_of_tokens,
    one_text,
    plain_bytes,
    stream_of_texts,
    token_ids,
    whole_number,
)
from paribus.tokenization.bpe import Progress
from paribus.tokenization.demolition import Demolish
from paribus.tokenization.encoding import Encoding
from paribus.tokenization.pretokenization import Cutter, kind_of
from paribus.tokenization.pretokenizers import PATTERNS, Pretokenizer
from paribus.tokenization.settings import Algorithm, Candidates, EncoderName, Settings, check_lossless
from paribus.tokenization.spans import SpanPretokenizer
from paribus.tokenization.training import TrainingRequest, count_pretokens, train_vocabulary
from paribus.tokenization.units import UnitKind, Unknown
from paribus.tokenization.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from paribus.tokenization.word_counts import WordCounts
from paribus.tokenization.workspace import Ids

if TYPE_CHECKING:
    import pyarrow as pa
    from transformers import PreTrainedTokenizerBase

_UNKNOWN_TEXT = "\ufffd".encode()
NATURAL_ENCODERS: dict[Algorithm, EncoderName] = {"wordpiece": "left_to_right", "unigram": "viterbi"}
DROPOUT = 0.1
"""Probability of the paper (Provilkov et al. 2020)."""


class Tokenizer:
    """Text to token ids and back. Made by `train`, `load`, `from_huggingface` or `from_tiktoken`; never changes.

    Special tokens have ids but are never matched inside text: their spelling in a document is ordinary text.
    """

    def __init__(self, vocabulary: Vocabulary, settings: Settings, cutter: Cutter | None = None) -> None:
        self.vocabulary = vocabulary
        """Every token ever made, in order of creation, scaffolds and special tokens included."""
        self.settings = settings
        self.cutter = cutter
        """The pre-tokenizer, where it was made from data; None for one by pattern."""
        if (cutter is None) != (settings.pretokenizer in PATTERNS):
            needed = "needs an object made from data" if cutter is None else "is a pattern and takes no object"
            raise ConfigurationError(f"pretokenizer: {settings.pretokenizer} {needed}")
        self._encoding = Encoding(vocabulary, settings, cutter)

    @classmethod
    def train(
        cls,
        texts: Iterable[str] | WordCounts,
        *,
        algorithm: Algorithm = "bpe",
        vocab_size: int | None = None,
        unit: UnitKind = "byte",
        pretokenizer: str | Cutter = "gpt2_digits",
        encoder: EncoderName | None = None,
        special_tokens: Sequence[str] = (),
        unknown: Unknown | None = None,
        demolish: Demolish = "parents",
        candidates: Candidates = "normal",
        lossless: bool = False,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> "Tokenizer":
        """Train on `texts`, or on the counts of their pre-tokens that `pretokenizer` made.

        `pretokenizer` is a name of `PATTERNS`, `spans` (found in the texts with the default settings; all texts are
        then held in memory), or an object such as `SpanPretokenizer` makes. `encoder=None` is the algorithm's own:
        left_to_right for WordPiece, viterbi for Unigram, else merge_rank.
        `vocab_size` counts units and special tokens; training ends below it when no pair is left (see
        `settings.stopped`), and `bytes` always has 256 tokens and the special ones. With character units, `unknown`
        says what a character outside the alphabet becomes: its bytes (`byte_fallback`, 256 more units), one unknown
        token (`token`), or an error (`refuse`); None is byte fallback where `vocab_size` has room for it. `progress` is
        called with the size reached. The result is the same for any number of `threads`.

        Warns (UserWarning) where training ended below `vocab_size`. Raises ConfigurationError for unknown names, a size
        below the alphabet and special tokens, or, with `lossless`, for settings that lose text; DataError for text that
        has no UTF-8; TypeError for a single string, or bytes, in place of texts.
        """
        if not isinstance(texts, WordCounts):
            texts = stream_of_texts(texts, "Tokenizer.train")
        if not isinstance(pretokenizer, str) and not hasattr(pretokenizer, "to_state"):
            raise TypeError(f"pretokenizer takes a name or an object made from data, not {pretokenizer!r}")
        if pretokenizer == "spans" and not isinstance(texts, WordCounts):
            texts = list(texts)
            pretokenizer = SpanPretokenizer.train(texts)
        name = kind_of(pretokenizer)
        if algorithm == "bytes" and name == "stripped":
            raise ConfigurationError("pretokenizer=stripped loses whitespace, which algorithm=bytes keeps; use none")
        request = TrainingRequest(
            algorithm=algorithm,
            vocab_size=None if vocab_size is None else whole_number(vocab_size, "vocab_size"),
            unit="byte" if algorithm == "bytes" else unit,
            unknown=unknown,
            special_tokens=names_of_tokens(special_tokens, "special_tokens"),
            continuation=name == "stripped",
        )
        settings = Settings(
            algorithm=algorithm,
            unit=request.unit,
            unknown=unknown or "byte_fallback",
            pretokenizer=name,
            encoder=encoder or NATURAL_ENCODERS.get(algorithm, "merge_rank"),
            candidates=candidates,
            demolish=demolish,
            special_tokens=request.special_tokens,
            stopped="no_pair_left",
            string_equal_pairs=0,
        )
        if lossless:
            check_lossless(settings)
        cutter = None if isinstance(pretokenizer, str) else pretokenizer
        if isinstance(texts, WordCounts):
            words = texts
        else:
            given = () if algorithm == "bytes" else texts
            words = count_pretokens(given, cutter or Pretokenizer(name), threads=whole_number(threads, "threads"))
        trained = train_vocabulary(words, request, progress)
        settings = dataclasses.replace(
            settings,
            unknown=trained.unknown,
            stopped=trained.stopped,
            string_equal_pairs=trained.string_equal_pairs,
        )
        tokenizer = cls(trained.vocabulary, settings, cutter)
        if algorithm != "bytes" and vocab_size is not None and tokenizer.vocab_size < vocab_size:
            warnings.warn(
                f"vocab_size={vocab_size} was asked for, and the texts gave {tokenizer.vocab_size} tokens: no pair is "
                "left to merge; give more text or ask for fewer",
                stacklevel=2,
            )
        return tokenizer

    def encode(self, text: str) -> Ids:
        """Token ids of `text` in [0, vocab_size), shape (n,), int32. DataError for text that has no UTF-8, TypeError
        for what is no string."""
        return self._encoding.encode(text if type(text) is str else one_text(text, "encode"))

    def encode_bytes(self, data: bytes) -> Ids:
        """Ids of bytes that need not be UTF-8; what is none counts as one character a byte. Byte units only.

        `decode_bytes` gives them back. Raises ConfigurationError for character units and for pre-tokenizers made from
        data, which read characters.
        """
        if self.vocabulary.unit == "character" or self.cutter is not None:
            raise ConfigurationError(
                "bytes that are no text need byte units and a pre-tokenizer by pattern, "
                f"not unit={self.vocabulary.unit} and pretokenizer={self.settings.pretokenizer}"
            )
        return self._encoding.encode_bytes(plain_bytes(data))

    def encode_batch(self, texts: Iterable[str], *, threads: int = 1) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Flat token ids (int32) of n texts and their offsets (int64, n + 1); the same for any number of threads.

        TypeError for a single string, and for a text that is none.
        """
        return self._encoding.encode_batch(listed_texts(texts, "encode_batch"), whole_number(threads, "threads"))

    def encode_arrow(self, texts: "pa.StringArray | pa.LargeStringArray") -> tuple[Ids, npt.NDArray[np.int64]]:
        """The same for the strings of an Arrow array, which no Python strings are made of.

        DataError for an array of another type than string or large_string, a chunked array, or one with nulls.
        """
        return self._encoding.encode_arrow(texts)

    def tokenize(self, text: str) -> list[bytes]:
        """The bytes of each token; their concatenation is the text's UTF-8 (an unknown token stands as U+FFFD).

        With the pre-tokenizer `stripped` the text's whitespace is not among them.
        """
        spellings = self._spellings
        return [spellings[identity] for identity in self.encode(text).tolist()]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; bytes that are no UTF-8 become U+FFFD.

        DataError for an id outside [0, vocab_size), TypeError for what is no list or array of whole numbers.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that token ids stand for. Raises as `decode`."""
        listed = token_ids(ids, self.vocab_size)
        spellings = self._spaced_spellings
        joined = b"".join([spellings[identity] for identity in listed.tolist()])
        return joined[1:] if self.settings.pretokenizer == "stripped" and joined.startswith(b" ") else joined

    def with_encoder(
        self,
        encoder: EncoderName,
        *,
        candidates: Candidates = "normal",
        demolish: Demolish | None = None,
        dropout: float = DROPOUT,
        seed: int = 0,
    ) -> "Tokenizer":
        """The same vocabulary with another encoder; `dropout` and `seed` are for BPE-dropout alone.

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
        return Tokenizer(self.vocabulary, settings, self.cutter)

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
    def eod_id(self) -> int:
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
        """The bytes each id stands for in text, as `decode_bytes` joins them; none for special tokens.

        An unknown token stands as U+FFFD. With the pre-tokenizer `stripped` a token that begins a word has a space.
        """
        special = set(self.special_tokens.values())
        return [b"" if identity in special else text for identity, text in enumerate(self._spaced_spellings)]

    def save(self, path: str | Path) -> None:
        """Write a self-contained directory of JSON; equal tokenizers make equal bytes.

        DataError where there can be no directory: `path` is a file, lies below one, or may not be made.
        """
        from paribus.tokenization.storage import save

        save(self.vocabulary, self.settings, self.cutter, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a directory written by `save`. DataError where it is missing, incomplete or contradicts itself."""
        from paribus.tokenization.storage import load

        return cls(*load(Path(path)))

    def to_huggingface(self) -> "PreTrainedTokenizerBase":
        """A `transformers` tokenizer with identical ids: a fast one where `tokenizer.json` can say the same, else a
        Python one around this object, whose directory AutoTokenizer reads after
        `import paribus.tokenization.huggingface`."""
        from paribus.tokenization.huggingface import to_huggingface

        return to_huggingface(self)

    @classmethod
    def from_huggingface(cls, path: str | Path) -> "Tokenizer":
        """A byte-level BPE tokenizer from `tokenizer.json` (a file or its directory), with its ids; or, from a
        directory without one, the tokenizer that was saved as `ParibusTokenizer` or lies with a checkpoint.

        Raises DataError for a broken file and ConfigurationError for a kind of tokenizer that cannot be the same here.
        """
        from paribus.tokenization.huggingface_import import from_huggingface

        ours = Path(path) / "tokenizer"
        if ours.is_dir() and not (Path(path) / "tokenizer.json").exists():
            return cls.load(ours)
        return cls(*from_huggingface(Path(path)))

    @classmethod
    def from_tiktoken(
        cls,
        source: str | Path | Mapping[bytes, int],
        *,
        pattern: str,
        special_tokens: Mapping[str, int] | None = None,
    ) -> "Tokenizer":
        """A tiktoken vocabulary with its ids: a file of lines `base64 rank`, or `mergeable_ranks`.

        `pattern` is the regular expression it goes with, or the name of one of our pre-tokenizers. Raises DataError for
        a broken file or ids with holes, ConfigurationError for a pattern that none of our pre-tokenizers cuts like.
        """
        from paribus.tokenization.tiktoken_import import from_tiktoken

        if special_tokens is not None and not isinstance(special_tokens, Mapping):
            raise TypeError(
                f"special_tokens takes ids by name, not {special_tokens!r}: write {{'<|endoftext|>': 50256}}"
            )
        if isinstance(source, Mapping) and not all(isinstance(token, bytes) for token in source):
            raise TypeError("mergeable_ranks takes ranks by tokens that are bytes, and one is no bytes")
        return cls(*from_tiktoken(source, pattern, special_tokens or {}))

    @cached_property
    def _spellings(self) -> list[bytes]:
        columns, kinds = self.vocabulary.columns, self.vocabulary.columns.kinds
        return [
            _UNKNOWN_TEXT if kinds[rank] == UNKNOWN else columns.spellings[rank]
            for rank in self.vocabulary.rank_of_id.tolist()
        ]

    @cached_property
    def _spaced_spellings(self) -> list[bytes]:
        """Where whitespace is lost, every token that begins a word brings one space."""
        if self.settings.pretokenizer != "stripped":
            return self._spellings
        inside = self.vocabulary.columns.continuations[self.vocabulary.rank_of_id].tolist()
        return [
            spelling if within else b" " + spelling for spelling, within in zip(self._spellings, inside, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "settings": self.settings, "cutter": self.cutter}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["vocabulary"], state["settings"], state["cutter"])  # type: ignore[misc]
