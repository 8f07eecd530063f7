"""Tokenizers of Hugging Face and tiktoken with their ids: byte-level BPE, WordPiece and ranks."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import Any

from paribus.errors import ConfigurationError, DataError
from paribus.store.files import read_object
from paribus.tokenization.pretokenize import PATTERNS, TOO_LONG, BertWords, Pretokenizer
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary import EntryKind, Token, Vocabulary, byte_characters

VERSION = "1.0"
_PLAIN: dict[str, Any] = {
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
}

_BYTES = {character: byte for byte, character in enumerate(byte_characters())}
WordPiece = tuple[Vocabulary, Settings, BertWords]
_MARK = "##"
_LONGEST = 100
_END, _UNKNOWN = "[SEP]", "[UNK]"
_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": _UNKNOWN,
    "cls_token": "[CLS]",
    "sep_token": _END,
    "mask_token": "[MASK]",
}
"""Names of the special tokens by their field of `tokenizer_config.json`."""
_NEEDED = "unk_token"
_OPTIONS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}
Ranks = Mapping[bytes, int]
_CL100K_TAIL = r"|\s*[\r\n]|\s+(?!\S)|\s+"
_SPELLINGS: dict[str, str] = {
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": "gpt2",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*" + _CL100K_TAIL: "gpt4",
}
PRETOKENIZER_OF_PATTERN = {pattern: name for name, pattern in PATTERNS.items()} | _SPELLINGS
"""Name of the pre-tokenizer that cuts every text as the pattern does. Llama 3's pattern is that of `gpt4`. Left out:
Qwen's (single digits), o200k's, and the later cl100k, whose `\\s++$` joins a line end to the whitespace after it at the
end of a text, where the earlier one cuts."""


# Byte-level BPE and BERT's WordPiece from Hugging Face's `tokenizer.json`, with their ids.
#
# Tokenizers that would give other ids here (normalizers, other pre-tokenizers and patterns, ...) are refused by name.
# Tokens around a text (a first token) are not part of a tokenizer here, and special tokens are not looked for in text:
# ids are those that `transformers` gives with `add_special_tokens=False, split_special_tokens=True`.
def from_huggingface(path: Path) -> tuple[Vocabulary, Settings, Pretokenizer | None]:
    """Read a `tokenizer.json`, or the one of a directory; its `eos_token` becomes the first special token."""
    file = path / "tokenizer.json" if path.is_dir() else path
    described = _read_json(file)
    try:
        model, added = described["model"], described.get("added_tokens") or []
        words_by = (described.get("pre_tokenizer") or {}).get("type")
        if model.get("type") == "WordPiece" and words_by == "BertPreTokenizer":
            return from_wordpiece_json(described, _special(added, file), file)
        pretokenizer = _pretokenizer(described, file)
        special = _special(added, file)
        words = {_bytes(name, file): token_id for name, token_id in model["vocab"].items() if name not in special}
        pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
        merges = [(_bytes(left, file), _bytes(right, file)) for left, right in pairs]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: malformed ({type(error).__name__}: {error})") from error
    vocabulary = byte_level_vocabulary(words, special, merges, str(file))
    config = file.with_name("tokenizer_config.json")
    eos = _read_json(config).get("eos_token") if config.is_file() else None
    eos = eos["content"] if isinstance(eos, dict) else eos
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
        special_tokens=special_tokens,
        whole_pretokens=whole_pretokens,
    )


def _read_json(file: Path) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            names = [name for name, _ in pairs]
            raise DataError(f"{file}: {next(name for name in names if names.count(name) > 1)!r} is there twice")
        return entries

    try:
        return json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: missing or no complete JSON ({error})") from error


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
    """Name of the pre-tokenizer. ConfigurationError that lists everything that would differ here."""
    outer = described.get("pre_tokenizer")
    steps = [] if outer is None else outer.get("pretokenizers", [outer])
    problems, name = _model_problems(described), _pretokenizer_name(steps)
    if name is None:
        patterns = [str(pattern) for step in steps for pattern in step.get("pattern", {}).values()]
        pattern = "".join(f" with the pattern {pattern}" for pattern in patterns)
        problems.append(
            f"pre_tokenizer {_types(steps)}{pattern} (only {', '.join(PATTERNS)}, then ByteLevel without prefix space)"
        )
    if problems or name is None:
        raise ConfigurationError(f"{file}: cannot be the same tokenizer here: {'; '.join(problems)}")
    return name


def _model_problems(described: dict[str, Any]) -> list[str]:
    model, normalizer = described["model"], described.get("normalizer")
    kind, version = model.get("type", "BPE" if "merges" in model else None), described.get("version", VERSION)
    problems = [] if version == VERSION else [f"version {version!r} (only {VERSION})"]
    problems += [] if kind == "BPE" else [f"model {kind!r} (only BPE, or WordPiece with BertPreTokenizer)"]
    problems += [f"model.{name}={model[name]!r}" for name, plain in _PLAIN.items() if model.get(name) not in plain]
    return problems if normalizer is None else [*problems, f"normalizer {_types([normalizer])}"]


def _types(steps: list[dict[str, Any]]) -> str:
    kinds = [inner["type"] for step in steps for inner in step.get("normalizers", [step])]
    return " and ".join(map(repr, kinds)) or "none"


def _pretokenizer_name(steps: list[dict[str, Any]]) -> str | None:
    if not steps or steps[-1]["type"] != "ByteLevel" or steps[-1].get("add_prefix_space", True):
        return None
    use_regex = steps[-1].get("use_regex", True)
    if len(steps) == 1:
        return "gpt2" if use_regex else "none"
    first = steps[0]
    isolated = first["type"] == "Split" and first.get("behavior") == "Isolated" and not first.get("invert")
    if len(steps) > 2 or use_regex or not isolated:
        return None
    return PRETOKENIZER_OF_PATTERN.get(first.get("pattern", {}).get("Regex"))


def _bytes(name: str, file: Path) -> bytes:
    try:
        return bytes([_BYTES[character] for character in name])
    except KeyError as error:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: token {name!r} is not written in the characters of bytes "
            "(only byte-level vocabularies)"
        ) from error


# A byte-level vocabulary made elsewhere, with its ids; the order of creation is made up.
#
# Bytes come first, then tokens in the order in which merge rules name them, then the rest by id, then special tokens.
def byte_level_vocabulary(
    ids: Mapping[bytes, int], special: Mapping[str, int], merges: Iterable[tuple[bytes, bytes]], source: str
) -> Vocabulary:
    """`ids` of ordinary tokens by their bytes and of special tokens by their text, `merges` in order of rank.

    Raises DataError, naming `source`, where a byte has no token, ids are shared or leave holes, a name is taken twice,
    or a merge is of other tokens or given twice.
    """
    missing = [byte for byte in range(256) if bytes([byte]) not in ids]
    if missing:
        raise DataError(
            f"{source}: {len(missing)} bytes are no tokens, such as 0x{missing[0]:02X}; "
            "a byte-level vocabulary has all 256"
        )
    _check_ids(ids, special, source)
    ranks: dict[bytes, int] = {}
    entries: list[Token] = []

    def rank_of(spelling: bytes, parents: tuple[int, int] | None = None, kind: EntryKind = "token") -> int:
        if spelling not in ranks:
            if spelling not in ids:
                raise DataError(f"{source}: a merge names {spelling!r}, which is no token")
            ranks[spelling] = len(entries)
            entries.append(Token(len(entries), ids[spelling], spelling, 0, parents, False, kind))
        return ranks[spelling]

    for byte in range(256):
        rank_of(bytes([byte]), kind="unit")
    rules: list[tuple[int, int, int]] = []
    for left, right in merges:
        parents = rank_of(left), rank_of(right)
        rules.append((*parents, rank_of(left + right, parents)))
    if len(set(rules)) < len(rules):
        first, second, _ = next(rule for rule in rules if rules.count(rule) > 1)
        raise DataError(f"{source}: {entries[first].bytes!r} and {entries[second].bytes!r} are merged twice")
    for spelling in sorted(ids.keys() - ranks.keys(), key=ids.__getitem__):
        rank_of(spelling)
    for name, token_id in sorted(special.items(), key=lambda item: item[1]):
        entries.append(Token(len(entries), token_id, name.encode("utf-8"), 0, None, False, "special"))
    return Vocabulary.of(entries, rules, "byte")


def _check_ids(ids: Mapping[bytes, int], special: Mapping[str, int], source: str) -> None:
    names: dict[int, bytes] = {}
    for name, token_id in (*ids.items(), *((text.encode(), number) for text, number in special.items())):
        if type(token_id) is not int or token_id < 0:
            raise DataError(f"{source}: the id of {name!r} is {token_id!r}, not an integer from 0")
        if token_id in names:
            raise DataError(f"{source}: id {token_id} is of both {names[token_id]!r} and {name!r}")
        names[token_id] = name
    holes = sorted(set(range(max(names, default=-1) + 1)) - names.keys())
    if holes:
        shown = ", ".join(map(str, holes[:10])) + (", ..." if len(holes) > 10 else "")
        raise DataError(
            f"{source}: {len(holes)} ids up to {max(names)} are of no token: {shown}; a vocabulary "
            "has no holes, so give names to them, such as '<|unused_0|>', as special tokens"
        )


# WordPiece tokenizers of BERT and its kin, from `tokenizer.json` or from `vocab.txt`, with their ids.
#
# Words are made by the same normalizer and pre-tokenizer (`pretokenize.BertWords`); a word is cut into the longest
# tokens from the left, and is one unknown token where there is none on the way. Special tokens are not looked for in
# text.
def from_wordpiece_json(described: Mapping[str, Any], special: Mapping[str, int], file: Path) -> WordPiece:
    """The tokenizer of a `tokenizer.json` with the special tokens `special`.

    Raises DataError for a broken file, ConfigurationError for one that would give other ids here.
    """
    model = described["model"]
    if model.get("continuing_subword_prefix", _MARK) != _MARK:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: model.continuing_subword_prefix="
            f"{model['continuing_subword_prefix']!r} (only {_MARK})"
        )
    words = BertWords(described.get("normalizer"), described["pre_tokenizer"], model["max_input_chars_per_word"])
    return _assemble(model["vocab"], special, model["unk_token"], words, file)


def from_vocabulary_text(file: Path) -> WordPiece:
    """The tokenizer of a `vocab.txt`, one token per line, with the options of the `tokenizer_config.json` beside it.

    Special tokens that these do not name are those of `special_tokens_map.json`, else BERT's. Raises DataError for a
    broken file, ConfigurationError for options by which text would be cut otherwise or no document would end.
    """
    config, map_file = file.with_name("tokenizer_config.json"), file.with_name("special_tokens_map.json")
    options = read_object(config) if config.is_file() else {}
    mapped = read_object(map_file) if map_file.is_file() else {}
    # null removes a special token, except the unknown one, without which no word can be cut, and the one that ends a
    # document, which is then BERT's.
    values = {field: options.get(field) or mapped.get(field, name) for field, name in _SPECIAL.items()}
    values |= {field: None for field in _SPECIAL if field in options and options[field] is None}
    values["sep_token"] = values["sep_token"] or _END
    names = {
        field: _token_text(value, field, config)
        for field, value in values.items()
        if value is not None or field == _NEEDED
    }
    _check_options(options, set(names.values()), config)
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    normalizer |= {"lowercase": True} | {ours: options[name] for ours, name in _OPTIONS.items() if name in options}
    tokens = vocabulary_lines(file)
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise DataError(f"{file}: {next(token for token in tokens if tokens.count(token) > 1)!r} is there twice")
    absent = [
        field for field, name in names.items() if name not in ids and (field == "sep_token" or name != _SPECIAL[field])
    ]
    if absent:
        raise ConfigurationError(
            f"{file}: {absent[0]} is {names[absent[0]]!r}, which is no line of it; name one that is"
        )
    special = {name: ids[name] for name in names.values() if name in ids}
    words = BertWords(normalizer, {"type": "BertPreTokenizer"}, _LONGEST)
    return _assemble(ids, special, names[_NEEDED], words, file, end=names["sep_token"])


def _token_text(value: Any, field: str, config: Path) -> str:
    """Text of a special token in `tokenizer_config.json`, which has the text or an object with it."""
    text = value.get("content") if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not text:
        raise DataError(f"{config}: {field} is {value!r}, which names no token")
    return text


def _check_options(options: Mapping[str, Any], special: Set[str], config: Path) -> None:
    """Refuse options that the tokenizer in Python follows and the one of `tokenizers` does not."""
    if not options.get("do_basic_tokenize", True):
        raise ConfigurationError(
            f"{config}: cannot be the same tokenizer here: do_basic_tokenize=false (words as whitespace separates "
            "them; only true)"
        )
    never_split = options.get("never_split") or []
    if not isinstance(never_split, list) or not all(isinstance(name, str) for name in never_split):
        raise DataError(f"{config}: never_split is {never_split!r}, which is no list of tokens")
    whole = sorted(set(never_split) - special)
    if whole:
        raise ConfigurationError(f"{config}: cannot be the same tokenizer here: never_split keeps {whole[0]!r} whole")


def vocabulary_lines(file: Path) -> list[str]:
    """The tokens of a `vocab.txt` in order of their ids; DataError for a file that is no text."""
    try:
        return file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: missing or no UTF-8 ({error})") from error


def _assemble(
    ids: Mapping[str, int], special: Mapping[str, int], unknown: str, words: BertWords, file: Path, *, end: str = _END
) -> WordPiece:
    """The tokenizer of all tokens; `end` names the special token that ends a document, if there is such a one."""
    to_plain = dict(ids) | dict(special)
    if unknown not in to_plain:
        raise DataError(f"{file}: the unknown token {unknown!r} is no token")
    # The model finds a special token in text where it is a word by itself; those in brackets never are.
    alone = next((name for name in special if words.pieces(name) == [name]), None)
    if alone is not None:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: the special token {alone!r} is a word, so text would have it"
        )
    if "" in to_plain or any(TOO_LONG in token for token in to_plain):
        raise DataError(f"{file}: a token is empty, or has the noncharacter U+FDD0")
    ordered = sorted(to_plain.items(), key=lambda token: token[1])
    entries = [_entry(rank, name, token_id, special, unknown) for rank, (name, token_id) in enumerate(ordered)]
    names = tuple(sorted(special.keys() - {unknown}, key=lambda name: (name != end, special[name])))
    settings = Settings(
        algorithm="wordpiece",
        unit="character",
        unknown="token",
        pretokenizer="bert",
        encoder="left_to_right",
        special_tokens=names,
    )
    try:
        return Vocabulary.of(entries, [], "character"), settings, words
    except DataError as error:
        raise DataError(f"{file}: {error}") from error


def _entry(rank: int, name: str, token_id: int, special: Mapping[str, int], unknown: str) -> Token:
    kind: EntryKind = "unknown" if name == unknown else "special" if name in special else "token"
    inside = kind == "token" and name.startswith(_MARK) and len(name) > len(_MARK)
    spelling = name.removeprefix(_MARK) if inside else name
    return Token(rank, token_id, spelling.encode("utf-8"), 0, None, False, kind, continuation=inside)


# tiktoken vocabularies, with the ids that tiktoken gives: tokens by rank, without merge rules.
#
# tiktoken merges the two neighbours whose joined bytes have the lowest rank, leftmost first, and takes a pre-token that
# is a token whole. Whatever stands around it, a token is always made from the same two: a stretch of text that ends as
# one token went through the same merges as it does alone. So one rule per token, in order of rank, is equivalent. A
# token that merging its own bytes does not lead to has no rule; only a whole pre-token becomes one.
def from_tiktoken(
    source: str | Path | Ranks, pattern: str, special_tokens: Mapping[str, int]
) -> tuple[Vocabulary, Settings]:
    """Read a file of lines `base64 rank`, or take `mergeable_ranks`; `pattern` is tiktoken's or one of our names."""
    name = pattern if pattern in PATTERNS else PRETOKENIZER_OF_PATTERN.get(pattern)
    if name is None or name == "stripped":
        raise ConfigurationError(
            f"pattern: no pre-tokenizer here cuts like {pattern}; it must be one of "
            f"{', '.join(name for name in PATTERNS if name != 'stripped')} or a pattern that is the same as theirs"
        )
    ranks = source if isinstance(source, Mapping) else read_ranks(Path(source))
    origin = "mergeable_ranks" if isinstance(source, Mapping) else str(source)
    ordered = sorted((token for token in ranks if len(token) > 1), key=ranks.__getitem__)
    pairs = (final_pair(token, ranks) for token in ordered)
    merges = (pair for pair in pairs if pair is not None)
    vocabulary = byte_level_vocabulary(ranks, special_tokens, merges, origin)
    names = tuple(sorted(special_tokens, key=special_tokens.__getitem__))
    return vocabulary, imported_settings(name, names, whole_pretokens=True)


def read_ranks(path: Path) -> dict[bytes, int]:
    """Tokens and ranks of a `.tiktoken` file. DataError with the line that is wrong."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{path}: unreadable ({error})") from error
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells:
            continue
        try:
            encoded, rank = cells
            token = base64.b64decode(encoded, validate=True)
            value = int(rank)
        except (ValueError, binascii.Error) as error:
            raise DataError(f"{path}, line {number}: not a token in base64 and its rank ({error})") from error
        if not token or token in ranks:
            raise DataError(f"{path}, line {number}: token {token!r} is {'there twice' if token else 'empty'}")
        ranks[token] = value
    return ranks


def final_pair(token: bytes, ranks: Ranks) -> tuple[bytes, bytes] | None:
    """The two tokens whose merge makes `token` out of its own bytes, or None where merging ends before."""
    parts = [bytes([byte]) for byte in token]
    last = None
    while len(parts) > 1:
        joined = [ranks.get(left + right) for left, right in pairwise(parts)]
        known = [rank for rank in joined if rank is not None]
        if not known:
            return None
        place = joined.index(min(known))
        last = parts[place], parts[place + 1]
        parts[place : place + 2] = [last[0] + last[1]]
    return last
