"""`Tokenizer`: a vocabulary, a pre-tokenizer and an encoder."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.bpe import Progress
from paribus.tokenization.demolition import Demolish
from paribus.tokenization.encoders import Candidates, EncoderName, build_encoder
from paribus.tokenization.pretokenizers import Pretokenizer
from paribus.tokenization.settings import Algorithm, Settings
from paribus.tokenization.training import TrainingRequest, count_pretokens, train_vocabulary
from paribus.tokenization.units import ByteUnits, CharacterUnits, UnitKind, Units, Unknown
from paribus.tokenization.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MEMO_PIECES = 1 << 18
_MEMO_CHARACTERS = 64
"""Longer pre-tokens hardly ever come again."""
_UNKNOWN_TEXT = "\ufffd".encode()

Ids = npt.NDArray[np.int32]


class Tokenizer:
    """Text to token ids and back. Made by `train`, `load` or `from_huggingface`; never changes.

    Special tokens have ids but are never matched inside text: their spelling in a document is ordinary text.
    """

    def __init__(self, vocabulary: Vocabulary, settings: Settings) -> None:
        self.vocabulary = vocabulary
        """Every token ever made, in order of creation, scaffolds and special tokens included."""
        self.settings = settings
        self._pretokenizer = Pretokenizer(settings.pretokenizer)
        self._units = _units(vocabulary, settings)
        self._encoder = build_encoder(settings.encoder, vocabulary, settings.candidates, settings.demolish)
        self._spellings = [_UNKNOWN_TEXT if entry.kind == "unknown" else entry.bytes for entry in vocabulary.by_id]
        self._memo: dict[str, list[int]] = {}

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        algorithm: Algorithm = "bpe",
        vocab_size: int | None = None,
        unit: UnitKind = "byte",
        pretokenizer: str = "gpt2_digits",
        encoder: EncoderName = "merge_rank",
        special_tokens: Sequence[str] = (),
        unknown: Unknown | None = None,
        demolish: Demolish = "parents",
        candidates: Candidates = "normal",
        progress: Progress | None = None,
    ) -> "Tokenizer":
        """Train on `texts`.

        `vocab_size` counts units and special tokens; training ends below it when no pair is left (see
        `settings.stopped`), and `bytes` always has 256 tokens and the special ones. With character units, `unknown`
        says what a character outside the alphabet becomes: its bytes (`byte_fallback`, 256 more units), one unknown
        token (`token`), or an error (`refuse`); None is byte fallback where `vocab_size` has room for it. `progress` is
        called with the size reached.

        Raises ConfigurationError for unknown names or a size below the alphabet and special tokens, DataError for
        text that has no UTF-8.
        """
        request = TrainingRequest(
            algorithm=algorithm,
            vocab_size=vocab_size,
            unit="byte" if algorithm == "bytes" else unit,
            unknown=unknown,
            special_tokens=tuple(special_tokens),
        )
        settings = Settings(
            algorithm=algorithm,
            unit=request.unit,
            unknown=unknown or "byte_fallback",
            pretokenizer=pretokenizer,
            encoder=encoder,
            candidates=candidates,
            demolish=demolish,
            special_tokens=request.special_tokens,
            stopped="no_pair_left",
            string_equal_pairs=0,
        )
        words = count_pretokens(() if algorithm == "bytes" else texts, Pretokenizer(pretokenizer))
        trained = train_vocabulary(words, request, progress)
        settings = dataclasses.replace(
            settings,
            unknown=trained.unknown,
            stopped=trained.training.stopped,
            string_equal_pairs=trained.training.string_equal_pairs,
        )
        return cls(trained.vocabulary, settings)

    def encode(self, text: str) -> Ids:
        """Token ids of `text` in [0, vocab_size), shape (n,), int32. DataError for text that has no UTF-8."""
        return np.array(self._encode(text), dtype=np.int32)

    def encode_batch(self, texts: Iterable[str]) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Flat token ids (int32) of n texts and their offsets (int64, n + 1)."""
        parts, offsets = [np.zeros(0, dtype=np.int32)], [0]
        for text in texts:
            parts.append(self.encode(text))
            offsets.append(offsets[-1] + len(parts[-1]))
        return np.concatenate(parts), np.array(offsets, dtype=np.int64)

    def tokenize(self, text: str) -> list[bytes]:
        """The bytes of each token; their concatenation is the text's UTF-8 (an unknown token stands as U+FFFD)."""
        return [self._spellings[identity] for identity in self._encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; bytes that are no UTF-8 become U+FFFD. DataError for an id outside [0, vocab_size)."""
        spellings, size = self._spellings, self.vocab_size
        listed = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), dtype=np.int64).tolist()
        if listed and not (min(listed) >= 0 and max(listed) < size):
            raise DataError(f"token ids must lie in 0..{size - 1}, not {min(listed)}..{max(listed)}")
        return b"".join([spellings[identity] for identity in listed]).decode("utf-8", errors="replace")

    def with_encoder(self, encoder: EncoderName, *, candidates: Candidates = "normal") -> "Tokenizer":
        """The same vocabulary with another encoder."""
        return Tokenizer(self.vocabulary, dataclasses.replace(self.settings, encoder=encoder, candidates=candidates))

    @property
    def vocab_size(self) -> int:
        """N: rows of the embedding table, units and special tokens included, scaffolds not."""
        return self.vocabulary.size

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Merge rules in training order."""
        entries = self.vocabulary
        return [(entries[left].bytes, entries[right].bytes) for left, right, _ in entries.merges]

    @property
    def special_tokens(self) -> dict[str, int]:
        """Id of each special token, in the order they were given."""
        ids = {entry.bytes.decode("utf-8"): entry.id for entry in self.vocabulary if entry.kind == "special"}
        return {name: identity for name in self.settings.special_tokens if (identity := ids[name]) is not None}

    @property
    def eod_id(self) -> int:
        """Id of the first special token, which ends a document. ConfigurationError where there is none."""
        if not self.settings.special_tokens:
            raise ConfigurationError("tokenizer.special_tokens is empty: no token ends a document")
        return self.special_tokens[self.settings.special_tokens[0]]

    def token_byte_lengths(self) -> npt.NDArray[np.int64]:
        """UTF-8 bytes each token stands for, shape (vocab_size,); 0 for special and unknown tokens."""
        lengths = [0 if entry.kind in ("special", "unknown") else len(entry.bytes) for entry in self.vocabulary.by_id]
        return np.array(lengths, dtype=np.int64)

    def save(self, path: str | Path) -> None:
        """Write a self-contained directory of JSON; equal tokenizers make equal bytes."""
        from paribus.tokenization.storage import save

        save(self.vocabulary, self.settings, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a directory written by `save`. DataError where it is missing, incomplete or contradicts itself."""
        from paribus.tokenization.storage import load

        return cls(*load(Path(path)))

    def to_huggingface(self) -> "PreTrainedTokenizerBase":
        """A `transformers` tokenizer with identical ids: a fast one for byte or character BPE with merge-rank
        encoding, else a Python one around this object."""
        from paribus.tokenization.huggingface import to_huggingface

        return to_huggingface(self)

    @classmethod
    def from_huggingface(cls, path: str | Path) -> "Tokenizer":
        """A byte-level BPE tokenizer from `tokenizer.json` (a file or its directory), with its ids.

        Raises DataError for a broken file and ConfigurationError for a kind of tokenizer that cannot be the same here.
        """
        from paribus.tokenization.huggingface_import import from_huggingface

        return cls(*from_huggingface(Path(path)))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        memo = self._memo
        for piece in self._pretokenizer.pieces(text):
            known = memo.get(piece)
            ids += self._encode_piece(piece) if known is None else known
        return ids

    def _encode_piece(self, piece: str) -> list[int]:
        ids = self._encoder.encode(self._units.split(piece))
        if len(piece) <= _MEMO_CHARACTERS:
            if len(self._memo) >= _MEMO_PIECES:
                self._memo.clear()
            self._memo[piece] = ids
        return ids

    def __getstate__(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "settings": self.settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["vocabulary"], state["settings"])  # type: ignore[misc]


def _units(vocabulary: Vocabulary, settings: Settings) -> Units:
    if vocabulary.unit == "byte":
        return ByteUnits()
    alphabet = [entry.bytes.decode("utf-8") for entry in vocabulary if entry.kind == "unit"]
    return CharacterUnits(alphabet, settings.unknown)
