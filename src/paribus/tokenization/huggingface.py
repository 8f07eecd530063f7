"""Our tokenizers as `transformers` tokenizers with identical ids. Imported only when asked for.

Special tokens are registered with `split_special_tokens=True`: as everywhere here, their spelling in text is text.

A `tokenizer.json` runs the same pattern in another engine (Oniguruma). Both agree on every character but those which
only the newer of the two Unicode tables knows as letters or numbers.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
from transformers import PreTrainedTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from paribus.errors import ConfigurationError
from paribus.tokenization.byte_characters import byte_characters
from paribus.tokenization.pretokenizers import PATTERNS
from paribus.tokenization.units import UNKNOWN_TOKEN
from paribus.tokenization.vocabulary import Entry, Vocabulary

if TYPE_CHECKING:
    from paribus.tokenization.tokenizer import Tokenizer


def to_huggingface(tok: "Tokenizer") -> PreTrainedTokenizerBase:
    """A fast tokenizer where `tokenizer.json` can say the same, else a Python one around `tok`."""
    special = list(tok.settings.special_tokens)
    options: dict[str, Any] = {"split_special_tokens": True, "clean_up_tokenization_spaces": False}
    if special:
        options |= {"eos_token": special[0], "extra_special_tokens": special[1:]}
    if any(entry.kind == "unknown" for entry in tok.vocabulary):
        options["unk_token"] = UNKNOWN_TOKEN
    if not expressible(tok):
        return PythonTokenizer(tok, **options)
    backend = tokenizers.Tokenizer.from_str(tokenizer_json(tok))
    fast: PreTrainedTokenizerBase = PreTrainedTokenizerFast(tokenizer_object=backend, **options)
    return fast


def expressible(tok: "Tokenizer") -> bool:
    """Whether `tokenizer.json` can describe `tok`: merge-rank encoding, no scaffolds, no refusal of characters."""
    refuses = tok.vocabulary.unit == "character" and tok.settings.unknown == "refuse"
    return tok.settings.encoder == "merge_rank" and tok.vocabulary.size == len(tok.vocabulary) and not refuses


def tokenizer_json(tok: "Tokenizer") -> str:
    """The contents of `tokenizer.json`. ConfigurationError where `expressible` is false."""
    if not expressible(tok):
        raise ConfigurationError("tokenizer.json can only describe merge-rank encoding without scaffolds")
    names = token_names(tok.vocabulary)
    entries, character = tok.vocabulary, tok.vocabulary.unit == "character"
    spelled = {entry.rank: names[entry.id] for entry in entries if entry.id is not None}
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": UNKNOWN_TOKEN if character and tok.settings.unknown == "token" else None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": character and tok.settings.unknown == "byte_fallback",
        "ignore_merges": False,
        "vocab": {name: identity for identity, name in enumerate(names)},
        "merges": [[spelled[left], spelled[right]] for left, right, _ in entries.merges],
    }
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(entry) for entry in entries.by_id if entry.kind in ("special", "unknown")],
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(tok.settings.pretokenizer, character),
        "post_processor": None,
        "decoder": _decoder(character),
        "model": model,
    }
    return json.dumps(described, ensure_ascii=False)


def token_names(vocabulary: Vocabulary) -> list[str]:
    """A distinct string for each id: GPT-2's characters for bytes, `<0xE2>` for fallback bytes, else the text.

    Raises ConfigurationError where a special token is spelled like an ordinary one.
    """
    table = byte_characters()
    names = [_name(entry, vocabulary.unit == "byte", table) for entry in vocabulary.by_id]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ConfigurationError(f"tokenizer.special_tokens: {twice} are also ordinary tokens; choose other names")
    return names


def _name(entry: Entry, byte: bool, table: list[str]) -> str:
    if entry.kind == "fallback":
        return f"<0x{entry.bytes[0]:02X}>"
    if byte and entry.kind in ("unit", "token"):
        return "".join(table[value] for value in entry.bytes)
    return entry.bytes.decode("utf-8")


def _pre_tokenizer(name: str, character: bool) -> dict[str, Any] | None:
    steps: list[dict[str, Any]] = []
    if name != "none":
        pattern = {"Regex": PATTERNS[name]}
        steps.append({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False})
    if not character:
        steps.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False})
    return {"type": "Sequence", "pretokenizers": steps} if steps else None


def _decoder(character: bool) -> dict[str, Any]:
    if character:
        return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _added(entry: Entry) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": entry.id, "content": entry.bytes.decode("utf-8"), **flags, "special": True}


class PythonTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """Any of our tokenizers behind the interface of `transformers`; `save_vocabulary` writes our own directory."""

    model_input_names = ("input_ids", "attention_mask")

    def __init__(self, tok: "Tokenizer", **options: Any) -> None:
        self._tok = tok
        self._names = token_names(tok.vocabulary)
        self._ids = {name: identity for identity, name in enumerate(self._names)}
        super().__init__(special_tokens_pattern="none", **options)

    @property
    def vocab_size(self) -> int:
        return self._tok.vocab_size

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [self._names[identity] for identity in self._tok.encode(text)]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self._tok.decode([self._ids[token] for token in tokens])

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write `Tokenizer.save` to `tokenizer/` inside the directory."""
        target = Path(save_directory) / (f"{filename_prefix}-tokenizer" if filename_prefix else "tokenizer")
        self._tok.save(target)
        return tuple(sorted(map(str, target.iterdir())))
