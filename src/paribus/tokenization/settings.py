"""Settings of a tokenizer besides its vocabulary; closed names, checked."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from paribus.errors import ConfigurationError, DataError, ParibusError
from paribus.tokenization.bpe import Stopped
from paribus.tokenization.pretokenize import PRETOKENIZERS
from paribus.tokenization.vocabulary import ENTRY_KINDS, SPECIAL, Columns, Demolish, UnitKind, Unknown, Vocabulary

Algorithm = Literal["bpe", "scaffold_bpe", "wordpiece", "unigram", "words", "bytes"]
EncoderName = Literal["merge_rank", "longest_first", "left_to_right", "viterbi", "fewest", "dropout", "whole"]
Candidates = Literal["normal", "expanded"]

_LOSSES = {
    "stripped": "pretokenizer=stripped loses whitespace; `whitespace` keeps it with the next word",
    "sentencepiece": "a SentencePiece model normalizes text, and at least ▁ (U+2581) is lost, which becomes a space; "
    "tokenizer.lossless=false says that this is wanted",
    "bert": "BERT's words lose whitespace, control characters and perhaps case and accents; "
    "tokenizer.lossless=false says that this is wanted",
}
"""Messages on the text that pre-tokenizers lose."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "algorithm": get_args(Algorithm),
    "unit": get_args(UnitKind),
    "unknown": get_args(Unknown),
    "pretokenizer": PRETOKENIZERS,
    "encoder": get_args(EncoderName),
    "candidates": get_args(Candidates),
    "demolish": get_args(Demolish),
    "stopped": get_args(Stopped),
}
FORMAT = 2
SETTINGS, VOCABULARY, MERGES = "settings.json", "vocabulary.json", "merges.json"
FIELDS = ["bytes", "id", "kind", "frequency", "left", "right", "continuation", "score"]
"""Cells of the row of a token: bytes are in hexadecimal; id, left and right are -1 where there is none."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a tokenizer was trained and how it encodes. Raises ConfigurationError for an unknown name."""

    algorithm: Algorithm
    unit: UnitKind
    unknown: Unknown
    """Treatment of a character outside a character alphabet; without effect on byte units."""
    pretokenizer: str
    encoder: EncoderName
    special_tokens: tuple[str, ...]
    candidates: Candidates = "normal"
    demolish: Demolish = "parents"
    stopped: Stopped = "vocab_size"
    """Why training ended; see `Stopped`."""
    string_equal_pairs: int = 0
    """Merged pairs whose string was a token already; no merge makes any."""
    dropout: float = 0.0
    """Probability that BPE-dropout skips a merge."""
    seed: int = 0
    """Seed of BPE-dropout's random numbers."""
    whole_pretokens: bool = False
    """True if merge-rank encoding takes a pre-token that is a token whole, reachable by merges or not (tiktoken)."""

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
        # Settings are read from files that anyone may have changed.
        if type(self.dropout) not in (int, float):
            raise ConfigurationError(f"encoder.probability: {self.dropout!r} is no number")
        for name, number in (("seed", self.seed), ("string_equal_pairs", self.string_equal_pairs)):
            if type(number) is not int or not 0 <= number < 1 << 63:
                raise ConfigurationError(f"{name}: {number!r} is no whole number from 0 to 2^63 - 1")
        if type(self.whole_pretokens) is not bool:
            raise ConfigurationError(f"whole_pretokens: {self.whole_pretokens!r} is neither true nor false")
        if not all(isinstance(token, str) for token in self.special_tokens):
            raise ConfigurationError(f"tokenizer.special_tokens: {list(self.special_tokens)} must be strings")
        if len(set(self.special_tokens)) < len(self.special_tokens) or "" in self.special_tokens:
            raise ConfigurationError(
                f"tokenizer.special_tokens: {list(self.special_tokens)} must be distinct and not empty"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigurationError(f"encoder.probability: {self.dropout} is no probability in [0, 1)")

    @property
    def spaced(self) -> bool:
        """True if whitespace is lost and tokens that begin a word stand for a space and their text."""
        return self.pretokenizer in ("stripped", "bert")

    @property
    def lossy(self) -> bool:
        """True if text is lost: whitespace, by normalization, or characters by an unknown token."""
        return self.pretokenizer in _LOSSES or (self.unit == "character" and self.unknown == "token")


def check_lossless(settings: Settings) -> None:
    """Raise ConfigurationError where text is lost."""
    if settings.pretokenizer in _LOSSES:
        raise ConfigurationError(_LOSSES[settings.pretokenizer])
    if settings.lossy:
        raise ConfigurationError("unknown=token loses characters outside the alphabet; `byte_fallback` keeps them")


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise ConfigurationError unless `value` is one of `known`."""
    if value not in known:
        raise ConfigurationError(f"{name}: {value!r} is unknown; one of {', '.join(known)}")


def write(vocabulary: Vocabulary, settings: Settings, directory: Path) -> None:
    """Write the files into an existing directory."""
    described = {name: getattr(settings, name) for name in sorted(Settings.__dataclass_fields__)}
    described |= {"format": FORMAT, "special_tokens": list(settings.special_tokens), "vocab_size": vocabulary.size}
    (directory / SETTINGS).write_text(json.dumps(described, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    _write_lines(directory / VOCABULARY, [json.dumps(FIELDS, separators=(",", ":")), *_rows(vocabulary.columns)])
    _write_lines(directory / MERGES, [f"[{left},{right},{result}]" for left, right, result in vocabulary.merges])


def read(directory: Path) -> tuple[Vocabulary, Settings]:
    """Read what `write` wrote; DataError names the file and what is wrong with it."""
    if not directory.is_dir():
        raise DataError(f"{directory}: no tokenizer directory; one is written by Tokenizer.save")
    settings, size = _settings(directory / SETTINGS)
    rows, merges = read_tokenizer_json(directory / VOCABULARY), read_tokenizer_json(directory / MERGES)
    try:
        vocabulary = Vocabulary(_columns(rows), np.array(merges, np.int32).reshape(-1, 3), settings.unit)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{directory / VOCABULARY}: malformed ({type(error).__name__}: {error})") from error
    except ParibusError as error:
        raise DataError(f"{directory}: {error}") from error
    columns = vocabulary.columns
    special = {columns.spellings[rank].decode("utf-8", "replace") for rank in np.flatnonzero(columns.kinds == SPECIAL)}
    if vocabulary.size != size or special != set(settings.special_tokens):
        raise DataError(
            f"{directory}: {SETTINGS} says {size} tokens, {VOCABULARY} has {vocabulary.size} or other specials"
        )
    return vocabulary, settings


def _rows(columns: Columns) -> list[str]:
    numbers = (columns.ids, columns.kinds, columns.frequencies, columns.parents, columns.continuations.astype(int))
    cells = zip(columns.spellings, *(array.tolist() for array in (*numbers, columns.scores)), strict=True)
    return [
        f'["{token.hex()}",{token_id},"{ENTRY_KINDS[kind]}",{frequency},{left},{right},{continuation},{score!r}]'
        for token, token_id, kind, frequency, (left, right), continuation, score in cells
    ]


def _columns(rows: Any) -> Columns:
    if not isinstance(rows, list) or rows[:1] != [FIELDS]:
        raise DataError(f"{VOCABULARY} does not begin with the row {FIELDS}")
    wrong = next((number for number, row in enumerate(rows) if len(row) != len(FIELDS)), None)
    if wrong is not None:
        raise DataError(f"{VOCABULARY}: row {wrong} has {len(rows[wrong])} cells, not {len(FIELDS)}")
    spelled, ids, kinds, frequencies, left, right, continuations, scores = (
        zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(FIELDS)
    )
    codes = {kind: code for code, kind in enumerate(ENTRY_KINDS)}
    return Columns(
        ids=np.array(ids, dtype=np.int32),
        spellings=tuple(map(bytes.fromhex, spelled)),
        frequencies=np.array(frequencies, dtype=np.int64),
        parents=np.column_stack([np.array(left, np.int32), np.array(right, np.int32)]),
        kinds=np.array([codes[kind] for kind in kinds], dtype=np.uint8),
        continuations=np.array(continuations, dtype=np.bool_),
        scores=np.array(scores, dtype=np.float64),
    )


def _settings(path: Path) -> tuple[Settings, int]:
    described = read_tokenizer_json(path)
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(f"{path}: not a paribus tokenizer of format {FORMAT}")
    size = described.pop("vocab_size", None)
    del described["format"]
    if lacking := Settings.__dataclass_fields__.keys() - described.keys():
        raise DataError(f"{path}: lacks {', '.join(sorted(lacking))}")
    try:
        return Settings(**described | {"special_tokens": tuple(described.get("special_tokens", ()))}), size
    except (TypeError, ParibusError) as error:
        raise DataError(f"{path}: {error}") from error


def _write_lines(path: Path, rows: list[str]) -> None:
    lines = ",\n".join(rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read_tokenizer_json(path: Path) -> Any:
    """The JSON of one file of a tokenizer; DataError where it is missing or unreadable."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing; a tokenizer has {SETTINGS}, {VOCABULARY} and {MERGES}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: unreadable JSON ({error})") from error
