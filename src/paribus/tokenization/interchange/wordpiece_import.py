"""WordPiece tokenizers of BERT and its kin, from `tokenizer.json` or from `vocab.txt`, with their ids.

Words are made by the same normalizer and pre-tokenizer (`pretokenize.bert_words`); a word is cut into the longest
tokens from the left, and is one unknown token where there is none on the way. Special tokens are not looked for in
text.
"""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from paribus.errors import ConfigurationError, DataError
from paribus.store.files import read_object
from paribus.tokenization.pretokenize.bert_words import TOO_LONG, BertWords
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary.vocabulary import EntryKind, Vocabulary, VocabularyEntry

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


def is_wordpiece(described: Mapping[str, Any]) -> bool:
    """Whether a `tokenizer.json` describes a model `WordPiece` over BERT's words."""
    kind = (described.get("pre_tokenizer") or {}).get("type")
    return described["model"].get("type") == "WordPiece" and kind == "BertPreTokenizer"


def from_wordpiece_json(described: Mapping[str, Any], special: Mapping[str, int], file: Path) -> WordPiece:
    """The tokenizer of a `tokenizer.json`, `special` being its special tokens.

    Raises DataError for a broken file, ConfigurationError for what would not be the same.
    """
    model = described["model"]
    if model.get("continuing_subword_prefix", _MARK) != _MARK:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: model.continuing_subword_prefix="
            f"{model['continuing_subword_prefix']!r} (only {_MARK})"
        )
    words = BertWords(described.get("normalizer"), described["pre_tokenizer"], model["max_input_chars_per_word"])
    return _assembled(model["vocab"], special, model["unk_token"], words, file)


def from_vocabulary_text(file: Path) -> WordPiece:
    """The tokenizer of a `vocab.txt`, a token a line, with the options of `tokenizer_config.json` beside it.

    Special tokens that it does not name are those of `special_tokens_map.json`, else BERT's. Raises DataError for a
    broken file, ConfigurationError for options by which text would be cut otherwise or no document would end.
    """
    config, map_file = file.with_name("tokenizer_config.json"), file.with_name("special_tokens_map.json")
    options = read_object(config) if config.is_file() else {}
    mapped = read_object(map_file) if map_file.is_file() else {}
    # null takes a special token away, but for the unknown one, without which no word is cut, and the one that ends a
    # document, which is then BERT's.
    given = {field: options.get(field) or mapped.get(field, name) for field, name in _SPECIAL.items()}
    given |= {field: None for field in _SPECIAL if field in options and options[field] is None}
    given["sep_token"] = given["sep_token"] or _END
    named = {
        field: _named(value, field, config) for field, value in given.items() if value is not None or field == _NEEDED
    }
    _check_options(options, set(named.values()), config)
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    normalizer |= {"lowercase": True} | {ours: options[name] for ours, name in _OPTIONS.items() if name in options}
    tokens = vocabulary_lines(file)
    ids = {token: identity for identity, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise DataError(f"{file}: {next(token for token in tokens if tokens.count(token) > 1)!r} is there twice")
    absent = [
        field for field, name in named.items() if name not in ids and (field == "sep_token" or name != _SPECIAL[field])
    ]
    if absent:
        raise ConfigurationError(
            f"{file}: {absent[0]} is {named[absent[0]]!r}, which is no line of it; name one that is"
        )
    special = {name: ids[name] for name in named.values() if name in ids}
    words = BertWords(normalizer, {"type": "BertPreTokenizer"}, _LONGEST)
    return _assembled(ids, special, named[_NEEDED], words, file, end=named["sep_token"])


def _named(value: Any, field: str, config: Path) -> str:
    """A special token as `tokenizer_config.json` has it: its text, or an object that holds it."""
    text = value.get("content") if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not text:
        raise DataError(f"{config}: {field} is {value!r}, which names no token")
    return text


def _check_options(options: Mapping[str, Any], special: Set[str], config: Path) -> None:
    """Options of the tokenizer in Python that the one of `tokenizers` does not follow: no one way is both of them."""
    if not options.get("do_basic_tokenize", True):
        raise ConfigurationError(
            f"{config}: cannot be the same tokenizer here: do_basic_tokenize=false (words as whitespace separates "
            "them; only true)"
        )
    never_split = options.get("never_split") or []
    if not isinstance(never_split, list) or not all(isinstance(name, str) for name in never_split):
        raise DataError(f"{config}: never_split is {never_split!r}, which is no list of tokens")
    kept = sorted(set(never_split) - special)
    if kept:
        raise ConfigurationError(f"{config}: cannot be the same tokenizer here: never_split keeps {kept[0]!r} whole")


def vocabulary_lines(file: Path) -> list[str]:
    """The tokens of a `vocab.txt` by id; DataError where it is no text."""
    try:
        return file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: missing or no UTF-8 ({error})") from error


def _assembled(
    ids: Mapping[str, int],
    special: Mapping[str, int],
    unknown: str,
    words: BertWords,
    file: Path,
    *,
    end: str = _END,
) -> WordPiece:
    """`end` is the special token that ends a document, where there is one of that name."""
    everything = dict(ids) | dict(special)
    if unknown not in everything:
        raise DataError(f"{file}: the unknown token {unknown!r} is no token")
    _check_special(special, words, file)
    if "" in everything or any(TOO_LONG in token for token in everything):
        raise DataError(f"{file}: a token is empty, or has the noncharacter U+FDD0")
    ordered = sorted(everything.items(), key=lambda token: token[1])
    entries = [_entry(rank, name, identity, special, unknown) for rank, (name, identity) in enumerate(ordered)]
    names = tuple(sorted(special.keys() - {unknown}, key=lambda name: (name != end, special[name])))
    settings = Settings(
        algorithm="wordpiece",
        unit="character",
        unknown="token",
        pretokenizer="bert",
        encoder="left_to_right",
        candidates="normal",
        demolish="parents",
        special_tokens=names,
        stopped="vocab_size",
        string_equal_pairs=0,
    )
    try:
        return Vocabulary.of(entries, [], "character"), settings, words
    except DataError as error:
        raise DataError(f"{file}: {error}") from error


def _check_special(special: Mapping[str, int], words: BertWords, file: Path) -> None:
    """The model finds a special token in text where it is a word by itself; those in brackets never are."""
    alone = next((name for name in special if words.pieces(name) == [name]), None)
    if alone is not None:
        raise ConfigurationError(
            f"{file}: cannot be the same tokenizer here: the special token {alone!r} is a word, so text would have it"
        )


def _entry(rank: int, name: str, identity: int, special: Mapping[str, int], unknown: str) -> VocabularyEntry:
    kind: EntryKind = "unknown" if name == unknown else "special" if name in special else "token"
    inside = kind == "token" and name.startswith(_MARK) and len(name) > len(_MARK)
    spelling = name.removeprefix(_MARK) if inside else name
    return VocabularyEntry(rank, identity, spelling.encode("utf-8"), 0, None, False, kind, continuation=inside)
