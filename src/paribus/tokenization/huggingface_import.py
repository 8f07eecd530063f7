"""Byte-level BPE tokenizers of Hugging Face's `tokenizer.json`, with their ids.

What would encode otherwise here (normalizers, other pre-tokenizers, ignored merges, ...) is refused by name.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.byte_characters import byte_characters
from paribus.tokenization.pretokenizers import PATTERNS
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary import Entry, EntryKind, Vocabulary

_PLAIN: dict[str, Any] = {
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
    "ignore_merges": (None, False),
}
_GPT2_SHORT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def from_huggingface(path: Path) -> tuple[Vocabulary, Settings]:
    """Read a `tokenizer.json`, or the one of a directory; its `eos_token` becomes the first special token."""
    file = path / "tokenizer.json" if path.is_dir() else path
    described = _read(file)
    try:
        model, added = described["model"], described.get("added_tokens") or []
        _check_model(described, model, file)
        pretokenizer = _pretokenizer(described.get("pre_tokenizer"), file)
        special = {token["content"]: token["id"] for token in added}
        vocabulary = _Import(model["vocab"], special, file).vocabulary(model["merges"])
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: malformed ({type(error).__name__}: {error})") from error
    eos = _eos(file.with_name("tokenizer_config.json"))
    settings = Settings(
        algorithm="bpe",
        unit="byte",
        unknown="byte_fallback",
        pretokenizer=pretokenizer,
        encoder="merge_rank",
        candidates="normal",
        demolish="parents",
        special_tokens=tuple(sorted(special, key=lambda name: (name != eos, special[name]))),
        stopped="vocab_size",
        string_equal_pairs=0,
    )
    return vocabulary, settings


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no readable tokenizer.json ({error})") from error


def _eos(config: Path) -> str | None:
    token = _read(config).get("eos_token") if config.is_file() else None
    return token["content"] if isinstance(token, dict) else token


def _check_model(described: dict[str, Any], model: dict[str, Any], file: Path) -> None:
    problems = [] if model["type"] == "BPE" else [f"model {model['type']!r} (only BPE)"]
    problems += [f"model.{name}={model[name]!r}" for name, plain in _PLAIN.items() if model.get(name) not in plain]
    if described.get("normalizer") is not None:
        problems.append(f"normalizer {described['normalizer'].get('type')!r}")
    if problems:
        raise ConfigurationError(f"{file}: cannot be the same tokenizer here: {', '.join(problems)}")


def _pretokenizer(described: dict[str, Any] | None, file: Path) -> str:
    known = {pattern: name for name, pattern in PATTERNS.items()} | {_GPT2_SHORT: "gpt2"}
    steps = [] if described is None else described.get("pretokenizers", [described])
    if steps and steps[-1]["type"] == "ByteLevel" and not steps[-1].get("add_prefix_space", True):
        regular = steps[-1].get("use_regex", True)
        if len(steps) == 1:
            return "gpt2" if regular else "none"
        first = steps[0]
        pattern = first.get("pattern", {}).get("Regex")
        isolated = first["type"] == "Split" and first.get("behavior") == "Isolated" and not first.get("invert")
        if len(steps) == 2 and not regular and isolated and pattern in known:
            return known[pattern]
    raise ConfigurationError(
        f"{file}: its pre_tokenizer is none of {', '.join(PATTERNS)} followed by ByteLevel without a prefix space"
    )


class _Import:
    """Entries in an order of creation: bytes, then tokens by the first merge that makes them, then the rest."""

    def __init__(self, vocab: dict[str, int], special: dict[str, int], file: Path) -> None:
        self._vocab = {name: identity for name, identity in vocab.items() if name not in special}
        self._special, self._file = special, file
        self._bytes = {character: byte for byte, character in enumerate(byte_characters())}
        self._ranks: dict[str, int] = {}
        self._entries: list[Entry] = []

    def vocabulary(self, merges: Sequence[str | Sequence[str]]) -> Vocabulary:
        for character in self._bytes:
            self._add(character, "unit")
        rules = [self._merge(merge.split(" ") if isinstance(merge, str) else merge) for merge in merges]
        for name in sorted(self._vocab, key=self._vocab.__getitem__):
            if name not in self._ranks:
                self._add(name, "token")
        for name, identity in sorted(self._special.items(), key=lambda item: item[1]):
            self._append(identity, name.encode("utf-8"), None, "special")
        return Vocabulary.of(self._entries, rules, "byte")

    def _merge(self, pair: Sequence[str]) -> tuple[int, int, int]:
        left, right = (self._add(name, "token") for name in pair)
        return left, right, self._add("".join(pair), "token", (left, right))

    def _add(self, name: str, kind: EntryKind, parents: tuple[int, int] | None = None) -> int:
        if name not in self._ranks:
            if name not in self._vocab or not self._bytes.keys() >= set(name):
                raise DataError(f"{self._file}: token {name!r} is not in model.vocab or not byte-level")
            self._ranks[name] = len(self._entries)
            self._append(self._vocab[name], bytes(self._bytes[character] for character in name), parents, kind)
        return self._ranks[name]

    def _append(self, identity: int, spelling: bytes, parents: tuple[int, int] | None, kind: EntryKind) -> None:
        entry = Entry(len(self._entries), identity, spelling, 0, parents, False, kind)
        self._entries.append(entry)
