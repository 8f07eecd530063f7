"""Byte-level BPE and BERT's WordPiece from Hugging Face's `tokenizer.json`, with their ids.

What would encode otherwise here (normalizers, other pre-tokenizers and patterns, ...) is refused by name. What is added
around a text (a first token) is not part of a tokenizer here, and special tokens are not looked for in text: ids are
those that `transformers` gives with `add_special_tokens=False, split_special_tokens=True`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.interchange.byte_level_import import ByteLevelImport
from paribus.tokenization.interchange.foreign_patterns import PRETOKENIZER_OF_PATTERN
from paribus.tokenization.interchange.wordpiece_import import from_wordpiece_json, is_wordpiece
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.pretokenize.patterns import PATTERNS
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary.units import byte_characters
from paribus.tokenization.vocabulary.vocabulary import Vocabulary

VERSION = "1.0"
_PLAIN: dict[str, Any] = {
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
}

_BYTES = {character: byte for byte, character in enumerate(byte_characters())}


def from_huggingface(path: Path) -> tuple[Vocabulary, Settings, Cutter | None]:
    """Read a `tokenizer.json`, or the one of a directory; its `eos_token` becomes the first special token."""
    file = path / "tokenizer.json" if path.is_dir() else path
    described = _read(file)
    try:
        model, added = described["model"], described.get("added_tokens") or []
        if is_wordpiece(described):
            return from_wordpiece_json(described, _special(added, file), file)
        pretokenizer = _pretokenizer(described, file)
        special = _special(added, file)
        words = {_bytes(name, file): identity for name, identity in model["vocab"].items() if name not in special}
        merges = [_merge(pair, file) for pair in model["merges"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: malformed ({type(error).__name__}: {error})") from error
    vocabulary = ByteLevelImport(words, special, str(file)).vocabulary(merges)
    eos = _eos(file.with_name("tokenizer_config.json"))
    names = tuple(sorted(special, key=lambda name: (name != eos, special[name])))
    return vocabulary, imported_settings(pretokenizer, names, whole_pretokens=bool(model.get("ignore_merges"))), None


def imported_settings(pretokenizer: str, special_tokens: tuple[str, ...], *, whole_pretokens: bool) -> Settings:
    """Settings of a byte-level BPE tokenizer that was trained elsewhere."""
    return Settings(
        algorithm="bpe",
        unit="byte",
        unknown="byte_fallback",
        pretokenizer=pretokenizer,
        encoder="merge_rank",
        candidates="normal",
        demolish="parents",
        special_tokens=special_tokens,
        stopped="vocab_size",
        string_equal_pairs=0,
        whole_pretokens=whole_pretokens,
    )


def _read(file: Path) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        if len(read) < len(pairs):
            names = [name for name, _ in pairs]
            raise DataError(f"{file}: {next(name for name in names if names.count(name) > 1)!r} is there twice")
        return read

    try:
        return json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: missing or no complete JSON ({error})") from error


def _eos(config: Path) -> str | None:
    token = _read(config).get("eos_token") if config.is_file() else None
    return token["content"] if isinstance(token, dict) else token


def _special(added: Sequence[dict[str, Any]], file: Path) -> dict[str, int]:
    ordinary = [token["content"] for token in added if not token.get("special", False)]
    if ordinary:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: {len(ordinary)} added tokens that are not special are looked "
            f"for in text before anything else, such as {ordinary[0]!r}"
        )
    special = {token["content"]: token["id"] for token in added}
    if len(special) < len(added):
        raise DataError(f"{file}: an added token is there twice")
    return special


def _pretokenizer(described: dict[str, Any], file: Path) -> str:
    """Name of the pre-tokenizer. ConfigurationError with everything that would not be the same."""
    steps = _steps(described.get("pre_tokenizer"))
    problems, found = _model_problems(described), _pretokenizer_name(steps)
    if found is None:
        pattern = "".join(f" with the pattern {pattern}" for pattern in _patterns(steps))
        problems.append(
            f"pre_tokenizer {_kinds(steps)}{pattern} (only {', '.join(PATTERNS)}, then ByteLevel without prefix space)"
        )
    if problems or found is None:
        raise ConfigurationError(f"{file}: cannot be the same tokenizer here: {'; '.join(problems)}")
    return found


def _model_problems(described: dict[str, Any]) -> list[str]:
    model, normalizer = described["model"], described.get("normalizer")
    kind, version = model.get("type", "BPE" if "merges" in model else None), described.get("version", VERSION)
    problems = [] if version == VERSION else [f"version {version!r} (only {VERSION})"]
    problems += [] if kind == "BPE" else [f"model {kind!r} (only BPE, or WordPiece with BertPreTokenizer)"]
    problems += [f"model.{name}={model[name]!r}" for name, plain in _PLAIN.items() if model.get(name) not in plain]
    return problems if normalizer is None else [*problems, f"normalizer {_kinds([normalizer])}"]


def _steps(described: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [] if described is None else described.get("pretokenizers", [described])


def _kinds(steps: list[dict[str, Any]]) -> str:
    kinds = [inner["type"] for step in steps for inner in step.get("normalizers", [step])]
    return " and ".join(map(repr, kinds)) or "none"


def _patterns(steps: list[dict[str, Any]]) -> list[str]:
    return [str(pattern) for step in steps for pattern in step.get("pattern", {}).values()]


def _pretokenizer_name(steps: list[dict[str, Any]]) -> str | None:
    if not steps or steps[-1]["type"] != "ByteLevel" or steps[-1].get("add_prefix_space", True):
        return None
    regular = steps[-1].get("use_regex", True)
    if len(steps) == 1:
        return "gpt2" if regular else "none"
    first = steps[0]
    isolated = first["type"] == "Split" and first.get("behavior") == "Isolated" and not first.get("invert")
    if len(steps) > 2 or regular or not isolated:
        return None
    return PRETOKENIZER_OF_PATTERN.get(first.get("pattern", {}).get("Regex"))


def _merge(pair: str | Sequence[str], file: Path) -> tuple[bytes, bytes]:
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    return _bytes(left, file), _bytes(right, file)


def _bytes(name: str, file: Path) -> bytes:
    try:
        return bytes([_BYTES[character] for character in name])
    except KeyError as error:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: token {name!r} is not written in the characters of bytes "
            "(only byte-level vocabularies)"
        ) from error
