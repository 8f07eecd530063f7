"""Our tokenizers as `transformers` tokenizers with identical ids. Imported only when asked for.

Importing this module registers `ParibusTokenizer` with `AutoTokenizer`. transformers finds no plug-ins by itself, so
code that loads the directory of one needs the line `import paribus.tokenization.export`.

A special token that is spelled in a text becomes that token, as everywhere in transformers; in our corpora it is
ordinary text. `split_special_tokens=True` gives the ids of a corpus.
"""

import json
import logging
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from transformers import (
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.pretokenize import PATTERNS
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary import (
    CONTINUATION_MARK,
    SPECIAL,
    UNKNOWN,
    UNKNOWN_TOKEN,
    distinct_names,
    token_names,
)

logger = logging.getLogger(__name__)
UNKNOWN_WORD = "< unk >"
"""Name of the unknown token in the model `WordPiece`, which looks whole pre-tokens up: none has spaces inside. In the
model `BPE` only where an ordinary token has taken the usual name."""
_UNLIMITED = 2**31
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
TEXTS = (
    "",
    " ",
    "All human beings are born free and equal in dignity and rights; they're endowed with reason. (1948)\n\n",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straßenbahn-Übergänge für 1.250,50 €.",
    "人人生而自由，在尊严和权利上一律平等。東京タワーは333メートルです。모든 인간은 태어날 때부터 자유로우며.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق ١٢٣. כל בני אדם נולדו בני חורין.",
    "def f(x: int) -> str:\n\treturn {'a': [x ** 2, 0xFF]}  # isn't it?\r\n\r\n\r\n    ##x ## y\n \n\t\n",
    "👩‍👩‍👧‍👦 🇩🇪🤷🏽‍♀️ e\u0301 ﬁ Ǆ ſ'S 'LL I'Ve \u200b\ufeff\x00\x07\x1c\x85\xa0\u2003\u3000z",
    "aaa aaaa aaaaa ---- --- 0000000 1234567 ............ ((((( !!!!!!!!!  \n   \n\n\n      x",
    "<unk> <0x41> ▁ Ġ ## <|endoftext|>",
)
_TOKENS, _TOGETHER = 8192, 64


def to_huggingface(tok: TextTokenizer, **options: Any) -> PreTrainedTokenizerBase:
    """A fast tokenizer where `tokenizer.json` says the same, as checked on a sample, else a `ParibusTokenizer`.

    `options` are those of transformers' tokenizers, such as `model_max_length` and `pad_token`.
    """
    if obstacles(tok):
        return ParibusTokenizer(tok, **options)
    backend = tokenizers.Tokenizer.from_str(tokenizer_json(tok))
    differing = disagreement(tok, backend)
    if differing is not None:
        logger.warning("tokenizer.json gives other ids for %.60r; ParibusTokenizer is used instead", differing)
        return ParibusTokenizer(tok, **options)
    fast: PreTrainedTokenizerBase = PreTrainedTokenizerFast(
        tokenizer_object=backend, **common_options(tok, unknown_name(tok)) | options
    )
    return fast


class ParibusTokenizerConfig(PreTrainedConfig):  # type: ignore[misc]
    """The key under which transformers registers a tokenizer class; holds nothing."""

    model_type = "paribus_tokenizer"


def common_options(tok: TextTokenizer, unknown: str | None) -> dict[str, Any]:
    """Options of every tokenizer in transformers: its special tokens, the first of which ends a document."""
    special = list(tok.settings.special_tokens)
    options: dict[str, Any] = {"clean_up_tokenization_spaces": False}
    if special:
        options |= {"eos_token": special[0], "extra_special_tokens": special[1:]}
    return options if unknown is None else options | {"unk_token": unknown}


class ParibusTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """Any of our tokenizers behind the interface of `transformers`.

    Its directory holds `tokenizer_config.json` and, in `tokenizer/`, what `Tokenizer.save` writes.
    """

    vocab_files_names = {  # noqa: RUF012
        f"{name}_file": f"tokenizer/{name}.json" for name in ("settings", "vocabulary", "merges", "pretokenizer")
    }
    model_input_names = ("input_ids", "attention_mask")

    def __init__(
        self, tokenizer_object: TextTokenizer | None = None, *, settings_file: str | None = None, **options: Any
    ) -> None:
        """Wrap `tokenizer_object`, or the tokenizer in the directory of `settings_file`."""
        for name in self.vocab_files_names:
            options.pop(name, None)
        if tokenizer_object is None:
            if settings_file is None:
                raise DataError(
                    "no tokenizer/settings.json: a ParibusTokenizer reads the directory tokenizer/ that it wrote"
                )
            tokenizer_object = TextTokenizer.load(Path(settings_file).parent)
        self.paribus = tokenizer_object
        """The tokenizer that does the work."""
        self._names = distinct_names(self.paribus.vocabulary)
        self._ids = {name: token_id for token_id, name in enumerate(self._names)}
        unknown = next((entry.bytes.decode() for entry in self.paribus.vocabulary if entry.kind == "unknown"), None)
        super().__init__(**{"special_tokens_pattern": "none"} | common_options(self.paribus, unknown) | options)

    @property
    def vocab_size(self) -> int:
        return self.paribus.vocab_size

    def get_vocab(self) -> dict[str, int]:
        added: dict[str, int] = self.added_tokens_encoder
        return self._ids | added

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [self._names[token_id] for token_id in self.paribus.encode(text).tolist()]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text of tokens; those added to this object after training stand for their names."""
        tok = self.paribus
        space = b" " if tok.settings.spaced else b""
        spelled = b"".join([self._texts.get(token, space + token.encode()) for token in tokens])
        return spelled[tok.begins_with_space and spelled.startswith(b" ") :].decode("utf-8", errors="replace")

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """Bytes of ordinary tokens, by name."""
        special = self.paribus.special_tokens
        named = zip(self._names, self.paribus.token_bytes(), strict=True)
        return {name: text for name, text in named if name not in special}

    def save_pretrained(self, save_directory: str | Path, *arguments: Any, **options: Any) -> tuple[str, ...]:
        """Save as `transformers` does; ConfigurationError where the directory has a tokenizer.json."""
        foreign = Path(save_directory) / "tokenizer.json"
        if foreign.exists():
            raise ConfigurationError(
                f"{foreign} is of another tokenizer, and transformers would read it wherever paribus is not imported; "
                "remove it, or save to another directory"
            )
        files: tuple[str, ...] = super().save_pretrained(save_directory, *arguments, **options)
        return files

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write `Tokenizer.save` to `tokenizer/` inside the directory."""
        if filename_prefix:
            raise ConfigurationError(f"filename_prefix={filename_prefix!r}: a paribus tokenizer is a directory")
        target = Path(save_directory) / "tokenizer"
        self.paribus.save(target)
        return tuple(sorted(map(str, target.iterdir())))


AutoTokenizer.register(ParibusTokenizerConfig, tokenizer_class=ParibusTokenizer, exist_ok=True)


# Our tokenizers as `tokenizer.json`, with identical ids.
#
# - Merge-rank encoding is its model `BPE`, left-to-right longest match its model `WordPiece` (words between whitespace,
#   with continuation marks, or the pre-tokens of a pattern).
# - It has no scaffolds, no other encoders and no refusal of characters. Its model `Unigram` breaks ties the other way,
#   for the longest *last* token: with tokens `--` and `-`, `---` is `-|--` there and `--|-` here.
# - Special tokens are left out of its vocabulary, as its models would find them in text, if all their ids are the
#   last ones; otherwise all of them stay in it.
# - Its patterns run in another engine (Oniguruma). Both agree on every character but letters and numbers that only the
#   newer of the two Unicode tables knows.
def obstacles(tok: TextTokenizer) -> list[str]:
    """Reasons why `tokenizer.json` cannot describe `tok`; empty where it can."""
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
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = np.flatnonzero(kinds >= SPECIAL).tolist()
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token_id, "content": names[token_id], **flags, "special": True} for token_id in special
        ],
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(tok),
        "post_processor": None,
        "decoder": _decoder(tok),
        "model": _model(tok, names),
    }
    return json.dumps(described, ensure_ascii=False)


def unknown_name(tok: TextTokenizer) -> str | None:
    """Name of the unknown token in `tokenizer.json`; None without one."""
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
    # Only special tokens whose ids are the last can be left out.
    special = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id] == SPECIAL
    last = len(names) - int(special.sum())
    size = last if special[last:].all() else len(names)
    searched = {name: token_id for token_id, name in enumerate(names[:size])}
    common = {"unk_token": unknown_name(tok), "vocab": searched}
    if tok.settings.encoder == "left_to_right":
        prefix = CONTINUATION_MARK if marked else ""
        limits = {"continuing_subword_prefix": prefix, "max_input_chars_per_word": _UNLIMITED}
        return {"type": "WordPiece", **common, "unk_token": unknown_name(tok) or UNKNOWN_WORD, **limits}
    spelled = [names[token_id] for token_id in tok.vocabulary.columns.ids.tolist()]
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


def _pre_tokenizer(tok: TextTokenizer) -> dict[str, Any] | None:
    """The steps that cut text. Of GPT-2's pattern, `ByteLevel` alone, the only form that some other tools read."""
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
    steps: list[dict[str, Any]] = [_BYTE_LEVEL | {"use_regex": True}]
    if character:
        steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if tok.settings.pretokenizer == "stripped":  # a space before every token without a continuation mark
        space, mark = " " if character else "Ġ", CONTINUATION_MARK
        steps = [
            {"type": "Replace", "pattern": {"Regex": rf"\A(?!{mark})"}, "content": space},
            {"type": "Replace", "pattern": {"Regex": rf"\A{mark}"}, "content": ""},
            *steps,
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "decoders": steps}


def sample(tok: TextTokenizer) -> list[str]:
    """Text of several scripts, runs, whitespace and code, random tokens by a fixed seed, and special tokens."""
    kinds = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id]
    ordinary = np.flatnonzero((kinds != SPECIAL) & (kinds != UNKNOWN))
    drawn = np.random.default_rng(0).choice(ordinary, size=_TOKENS)
    decoded = [tok.decode(drawn[begin : begin + _TOGETHER]) for begin in range(0, _TOKENS, _TOGETHER)]
    return [*TEXTS, *decoded, *tok.settings.special_tokens]


def disagreement(tok: TextTokenizer, backend: "tokenizers.Tokenizer") -> str | None:
    """The first text of the sample to which `backend` gives other ids than `tok`, or None."""
    texts = sample(tok)
    backend.encode_special_tokens = True
    for text, encoding in zip(texts, backend.encode_batch(texts, add_special_tokens=False), strict=True):
        if encoding.ids != tok.encode(text).tolist():
            return text
    return None
