"""What `tokenizer.json` can say of our tokenizers, with identical ids.

- Merge-rank encoding is its model `BPE`, left-to-right longest match its model `WordPiece` (words between whitespace,
  with continuation marks, or the pre-tokens of a pattern).
- Scaffolds, the other encoders and the refusal of characters it cannot say. Its model `Unigram` breaks ties the other
  way, for the longest *last* token: with tokens `--` and `-`, `---` is `-|--` there and `--|-` here.
- Its vocabulary holds no special tokens, which its models would find in text; they have the ids behind it.
- Its patterns run in another engine (Oniguruma). Both agree on every character but letters and numbers that only the
  newer of the two Unicode tables knows.
"""

import json
from typing import Any

import numpy as np

from paribus.errors import ConfigurationError
from paribus.tokenization.pretokenize.patterns import PATTERNS
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary.names import CONTINUATION_MARK, token_names
from paribus.tokenization.vocabulary.units import UNKNOWN_TOKEN
from paribus.tokenization.vocabulary.vocabulary import SPECIAL, UNKNOWN

UNKNOWN_WORD = "< unk >"
"""Name of the unknown token in the model `WordPiece`, which looks whole pre-tokens up: none has spaces inside. In the
model `BPE` only where an ordinary token has taken the usual name."""
_UNLIMITED = 2**31
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}


def obstacles(tok: TextTokenizer) -> list[str]:
    """Why `tokenizer.json` cannot describe `tok`; empty where it can."""
    settings, vocabulary = tok.settings, tok.vocabulary
    marked = bool(vocabulary.columns.continuations.any())
    from_left = settings.encoder == "left_to_right"
    falls_back = vocabulary.unit == "character" and settings.unknown == "byte_fallback"
    names = _names(tok)
    reasons = {
        f"encoder={settings.encoder}": settings.encoder not in ("merge_rank", "left_to_right"),
        "scaffolds": vocabulary.size != len(vocabulary),
        f"pretokenizer={settings.pretokenizer}": settings.pretokenizer not in PATTERNS,
        "unknown=refuse": vocabulary.unit == "character" and settings.unknown == "refuse",
        "byte fallback with continuation marks": falls_back and marked,
        "byte fallback in longest match from the left": falls_back and from_left,
        "longest match from the left in whole documents": from_left and settings.pretokenizer == "none",
        "a special token spelled like another token": len(set(names)) < len(names),
    }
    return [reason for reason, holds in reasons.items() if holds]


def tokenizer_json(tok: TextTokenizer) -> str:
    """The contents of `tokenizer.json`. ConfigurationError where there are `obstacles`."""
    if reasons := obstacles(tok):
        raise ConfigurationError(f"tokenizer.json cannot describe this tokenizer: {', '.join(reasons)}")
    names = _names(tok)
    kinds = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id]
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(names[identity], identity) for identity in np.flatnonzero(kinds >= SPECIAL).tolist()],
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(tok),
        "post_processor": None,
        "decoder": _decoder(tok),
        "model": _model(tok, names),
    }
    return json.dumps(described, ensure_ascii=False)


def unknown_name(tok: TextTokenizer) -> str | None:
    """What the unknown token is called there, or None where there is none."""
    if not (tok.vocabulary.columns.kinds == UNKNOWN).any():
        return None
    taken = token_names(tok.vocabulary).count(UNKNOWN_TOKEN) > 1
    return UNKNOWN_WORD if taken or tok.settings.encoder == "left_to_right" else UNKNOWN_TOKEN


def _names(tok: TextTokenizer) -> list[str]:
    names, unknown = token_names(tok.vocabulary), unknown_name(tok)
    if unknown is not None:
        ids = tok.vocabulary.columns.ids
        names[int(ids[tok.vocabulary.columns.kinds == UNKNOWN][0])] = unknown
    return names


def _model(tok: TextTokenizer, names: list[str]) -> dict[str, Any]:
    marked = tok.vocabulary.columns.continuations.any()
    common = {"unk_token": unknown_name(tok), "vocab": _searched(tok, names)}
    if tok.settings.encoder == "left_to_right":
        prefix = CONTINUATION_MARK if marked else ""
        limits = {"continuing_subword_prefix": prefix, "max_input_chars_per_word": _UNLIMITED}
        return {"type": "WordPiece", **common, "unk_token": unknown_name(tok) or UNKNOWN_WORD, **limits}
    spelled = [names[identity] for identity in tok.vocabulary.columns.ids.tolist()]
    return {
        "type": "BPE",
        "dropout": None,
        "continuing_subword_prefix": CONTINUATION_MARK if marked else None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": tok.vocabulary.unit == "character" and tok.settings.unknown == "byte_fallback",
        "ignore_merges": tok.settings.whole_pretokens,
        **common,
        "merges": [[spelled[left], spelled[right]] for left, right, _ in tok.vocabulary.merges],
    }


def _searched(tok: TextTokenizer, names: list[str]) -> dict[str, int]:
    """The vocabulary of the model, special tokens left out where their ids are the last, for no others can be."""
    special = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id] == SPECIAL
    last = len(names) - int(special.sum())
    size = last if special[last:].all() else len(names)
    return {name: identity for identity, name in enumerate(names[:size])}


def _pre_tokenizer(tok: TextTokenizer) -> dict[str, Any] | None:
    """GPT-2's pattern is the one that `ByteLevel` has built in, and the only form that some other tools read."""
    name, character = tok.settings.pretokenizer, tok.vocabulary.unit == "character"
    if name == "gpt2" and not character:
        return _BYTE_LEVEL | {"use_regex": True}
    steps: list[dict[str, Any]] = []
    if name == "stripped":
        steps.append(_split(r"\s+", "Removed"))
    elif name != "none":
        steps.append(_split(PATTERNS[name], "Isolated"))
    if not character:
        steps.append(_BYTE_LEVEL | {"use_regex": False})
    return {"type": "Sequence", "pretokenizers": steps} if steps else None


def _split(pattern: str, behavior: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def _decoder(tok: TextTokenizer) -> dict[str, Any]:
    character = tok.vocabulary.unit == "character"
    spaced = _spaces(" " if character else "Ġ") if tok.settings.pretokenizer == "stripped" else []
    if character:
        steps: list[dict[str, Any]] = [*spaced, {"type": "ByteFallback"}, {"type": "Fuse"}]
    else:
        steps = [*spaced, _BYTE_LEVEL | {"use_regex": True}]
    if spaced:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "decoders": steps}


def _spaces(space: str) -> list[dict[str, Any]]:
    """A space before every token that has no continuation mark, and the marks away."""
    mark = CONTINUATION_MARK
    return [
        {"type": "Replace", "pattern": {"Regex": rf"\A(?!{mark})"}, "content": space},
        {"type": "Replace", "pattern": {"Regex": rf"\A{mark}"}, "content": ""},
    ]


def _added(name: str, identity: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": identity, "content": name, **flags, "special": True}
