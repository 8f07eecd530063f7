"""Tokenizers read from `tokenizer.json`: the same ids, or a refusal that names every reason."""

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import regex
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing, vocabulary_size
from paribus.tokenization.export import tokenizer_json
from paribus.tokenization.huggingface import PRETOKENIZER_OF_PATTERN
from paribus.tokenization.pretokenize import PATTERNS
from paribus.tokenization.settings import check_lossless
from support.exported_texts import EOS, real_texts
from support.foreign_texts import LINES, TEXTS
from support.real_data import RealData

QWEN = PATTERNS["gpt4"].replace(r"\p{N}{1,3}", r"\p{N}")


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return real_texts(real_data)


@pytest.fixture(scope="module")
def tok(texts: list[str]) -> Tokenizer:
    return Tokenizer.train(texts, vocab_size=1000, pretokenizer="gpt2", special_tokens=[EOS, "<pad>"])


def write(description: dict[str, Any], directory: Path) -> Path:
    file = directory / "tokenizer.json"
    file.write_text(json.dumps(description), encoding="utf-8")
    return file


def assert_same_ids(imported: Tokenizer, file: Path, texts: list[str]) -> None:
    library = tokenizers.Tokenizer.from_file(str(file))
    library.encode_special_tokens = True
    for text in texts:
        assert imported.encode(text).tolist() == library.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("pretokenizer", ["gpt2", "gpt2_digits", "gpt4", "whitespace", "none"])
def test_an_imported_tokenizer_has_the_same_ids(pretokenizer: str, texts: list[str], tmp_path: Path) -> None:
    tok = Tokenizer.train(texts, vocab_size=700, pretokenizer=pretokenizer, special_tokens=["<pad>", EOS])
    tok.to_huggingface().save_pretrained(tmp_path)
    imported = Tokenizer.from_huggingface(tmp_path)
    assert imported.merges == tok.merges
    assert (imported.eos_id, imported.special_tokens) == (tok.eos_id, tok.special_tokens)
    assert imported.settings.pretokenizer == pretokenizer
    assert_same_ids(imported, tmp_path / "tokenizer.json", texts)
    for encoder in ("longest_first", "left_to_right", "fewest"):
        for text in texts:
            expected = tok.with_encoder(encoder).encode(text).tolist()
            assert imported.with_encoder(encoder).encode(text).tolist() == expected
    imported.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").encode(texts[0]).tolist() == tok.encode(texts[0]).tolist()


def test_gpt2s_file_is_read_as_it_is(tok: Tokenizer, texts: list[str], tmp_path: Path) -> None:
    """No model type, merges as strings, the special token in the vocabulary, a prefix-space flag and no use_regex."""
    description = json.loads(tokenizer_json(tok))
    model = description["model"]
    del model["type"]
    model |= {"unk_token": "", "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False}
    model["merges"] = [" ".join(pair) for pair in model["merges"]]
    model["vocab"][EOS] = description["added_tokens"][0]["id"]
    description["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    file = write(description, tmp_path)
    assert_same_ids(Tokenizer.from_huggingface(file), file, texts)


def test_llama3s_file_is_read_as_it_is(texts: list[str], tmp_path: Path) -> None:
    """Its tokens need not be reachable by merges: `ignore_merges` takes a pre-token that is a token whole."""
    trained = Tokenizer.train(texts, vocab_size=900, pretokenizer="gpt4", special_tokens=["<|begin_of_text|>", EOS])
    description = json.loads(tokenizer_json(trained))
    merges = [pair for pair in description["model"]["merges"] if len("".join(pair)) % 3]
    description["model"] |= {"ignore_merges": True, "merges": merges}
    description["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": EOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {EOS: {"id": EOS, "ids": [899], "tokens": [EOS]}},
    }
    file = write(description, tmp_path)
    imported = Tokenizer.from_huggingface(file)
    assert_same_ids(imported, file, texts)
    assert imported.to_huggingface()(texts[0])["input_ids"] == imported.encode(texts[0]).tolist()
    description["model"]["ignore_merges"] = False
    by_merges = Tokenizer.from_huggingface(write(description, tmp_path))
    assert_same_ids(by_merges, file, texts)
    assert any(by_merges.encode(text).tolist() != imported.encode(text).tolist() for text in texts)
    for text in texts:
        longest = imported.with_encoder("longest_first").encode(text).tolist()
        assert by_merges.with_encoder("longest_first").encode(text).tolist() == longest


def test_ids_in_another_order_are_imported_and_exported(tok: Tokenizer, texts: list[str], tmp_path: Path) -> None:
    description = json.loads(tokenizer_json(tok))
    last, special = tok.vocab_size - 1, description["added_tokens"]
    vocab = description["model"]["vocab"] | {token["content"]: token["id"] for token in special}
    description["model"]["vocab"] = {name: last - identity for name, identity in vocab.items()}
    description["added_tokens"] = [token | {"id": last - token["id"]} for token in special]
    file = write(description, tmp_path)
    imported = Tokenizer.from_huggingface(file)
    assert imported.special_tokens == {"<pad>": 0, EOS: 1}
    assert_same_ids(imported, file, texts)
    exported = imported.to_huggingface(split_special_tokens=True)
    for text in texts:
        assert exported(text)["input_ids"] == [last - identity for identity in tok.encode(text)]


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def sentencepiece(description: dict[str, Any]) -> None:
    prepend = {"type": "Prepend", "prepend": "▁"}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    description["normalizer"] = {"type": "Sequence", "normalizers": [prepend, replace]}
    description["model"]["byte_fallback"] = True
    description["pre_tokenizer"] = None


UNSUPPORTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    r"model\.dropout=0\.1": lambda it: it["model"].update(dropout=0.1),
    "normalizer 'NFC'": lambda it: it.update(normalizer={"type": "NFC"}),
    r"model 'Unigram' \(only BPE, or WordPiece": lambda it: it["model"].update(type="Unigram"),
    r"version '2\.0' \(only 1\.0\)": lambda it: it.update(version="2.0"),
    "end_of_word_suffix='</w>'": lambda it: it["model"].update(end_of_word_suffix="</w>"),
    "without prefix space": lambda it: it["pre_tokenizer"].update(add_prefix_space=True),
    "pre_tokenizer 'Digits' and 'ByteLevel'": lambda it: it.update(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTES]}
    ),
    regex.escape(QWEN): lambda it: it.update(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [SPLIT | {"pattern": {"Regex": QWEN}}, BYTES]}
    ),
    "byte_fallback=True; normalizer 'Prepend' and 'Replace'; pre_tokenizer none": sentencepiece,
    "1 added tokens that are not special": lambda it: it["added_tokens"][0].update(special=False),
    "'東' is not written in the characters of bytes": lambda it: it["model"]["vocab"].update({"東": 998}),
}
"""Changes of a description, by what is said of them."""


def test_descriptions_that_cannot_be_the_same_are_refused_by_name(tok: Tokenizer, tmp_path: Path) -> None:
    for message, change in UNSUPPORTED.items():
        description = json.loads(tokenizer_json(tok))
        change(description)
        with pytest.raises(
            ConfigurationError, match=rf"tokenizer.json: cannot be the same tokenizer here: .*{message}"
        ):
            Tokenizer.from_huggingface(write(description, tmp_path))


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    r"1 ids up to 999 are of no token: \d+; ": lambda it: (
        it["model"]["vocab"].pop("Ġthe"),
        it["model"]["merges"].clear(),
    ),
    "1 bytes are no tokens, such as 0x61": lambda it: it["model"]["vocab"].pop("a"),
    "id 5 is of both": lambda it: it["model"]["vocab"].update(Ġthe=5),
    "a merge names b' the the', which is no token": lambda it: it["model"]["merges"].append(["Ġthe", "Ġthe"]),
    "are merged twice": lambda it: it["model"]["merges"].append(it["model"]["merges"][3]),
    "an added token is there twice": lambda it: it["added_tokens"].append(it["added_tokens"][0]),
}


def test_broken_descriptions_are_refused_by_name(tok: Tokenizer, tmp_path: Path) -> None:
    for message, change in BROKEN.items():
        description = json.loads(tokenizer_json(tok))
        change(description)
        with pytest.raises(DataError, match=rf"tokenizer.json: .*{message}"):
            Tokenizer.from_huggingface(write(description, tmp_path))


@pytest.mark.parametrize("pattern", sorted(PRETOKENIZER_OF_PATTERN))
def test_every_pattern_that_stands_for_a_pretokenizer_cuts_like_it(pattern: str) -> None:
    own, given_pattern = regex.compile(PATTERNS[PRETOKENIZER_OF_PATTERN[pattern]]), regex.compile(pattern)

    @given(st.text(st.sampled_from("aZsStlvedm' \t\n\r\v 19٣!.-é中ſK\u00a0\u2028\x1c") | st.characters(), max_size=12))
    def check(text: str) -> None:
        assert given_pattern.findall(text) == own.findall(text)

    check()


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of BERT: `tokenizer.json`, and below `text` the same as `vocab.txt`."""
    root: Path = tmp_path_factory.mktemp("bert")
    library = BertWordPieceTokenizer(lowercase=request.param)
    library.train_from_iterator(LINES, vocab_size=250, limit_alphabet=60)
    library.save(str(root / "tokenizer.json"))
    (root / "text").mkdir()
    vocabulary = library.get_vocab()
    (root / "text" / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")
    (root / "text" / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": request.param}))
    return root


def test_ids_of_bert_are_those_of_the_library(directory: Path, tmp_path: Path) -> None:
    file = directory / "tokenizer.json"
    for place in ("", "tokenizer.json", "text", "text/vocab.txt"):
        tok = open_existing(directory / place)
        assert Tokenizer.from_huggingface(directory / place).vocabulary == tok.vocabulary
        assert tok.vocab_size == tokenizers.Tokenizer.from_file(str(file)).get_vocab_size()
        assert tok.vocab_size == vocabulary_size(directory / place)
        assert_same_ids(tok, file, TEXTS)
    tok.save(tmp_path / "saved")
    loaded, exported = Tokenizer.load(tmp_path / "saved"), tok.to_huggingface(split_special_tokens=True)
    assert exported.unk_token == "[UNK]"
    for text in TEXTS[:200]:
        assert loaded.encode(text).tolist() == tok.encode(text).tolist() == exported(text)["input_ids"]
    with pytest.raises(ConfigurationError, match="case and accents"):
        check_lossless(tok.settings)
    for encoder in ("longest_first", "fewest", "merge_rank"):
        with pytest.raises(ConfigurationError, match="needs every character as a token"):
            tok.with_encoder(encoder)


def renamed(directory: Path, root: Path, **options: Any) -> Path:
    """The `vocab.txt` with special tokens of other names, and `options` beside it, of which `None` leaves one out."""
    root.mkdir()
    text = (directory / "text" / "vocab.txt").read_text()
    (root / "vocab.txt").write_text(text.replace("[UNK]", "<unk>").replace("[SEP]", "<end>"))
    config = json.loads((directory / "text" / "tokenizer_config.json").read_text())
    named = {"unk_token": {"content": "<unk>"}, "sep_token": "<end>"}
    (root / "tokenizer_config.json").write_text(json.dumps(config | named | options))
    return root


def test_options_of_a_vocabulary_text_that_cut_otherwise_are_refused(directory: Path, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"do_basic_tokenize": False}, ConfigurationError, "tokenizer_config.json: .* do_basic_tokenize=false"),
        ({"never_split": ["<unk>", "the"]}, ConfigurationError, "never_split keeps 'the' whole"),
        ({"unk_token": None}, DataError, "unk_token is None, which names no token"),
        ({"sep_token": "</s>"}, ConfigurationError, "sep_token is '</s>', which is no line of it"),
    ]
    for number, (options, error, reason) in enumerate(cases):
        with pytest.raises(error, match=reason):
            open_existing(renamed(directory, tmp_path / str(number), **options))


LATER_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


@pytest.fixture(scope="module")
def trained(texts: list[str]) -> dict[bytes, int]:
    tok = Tokenizer.train(texts, vocab_size=2500, pretokenizer="gpt4")
    return {entry.bytes: entry.id for entry in tok.vocabulary if entry.id is not None}


@pytest.fixture(scope="module")
def random_merges(texts: list[str]) -> dict[bytes, int]:
    """Tokens in no order of use: many are not what merging their own bytes leads to."""
    draw, corpus = random.Random(7), "\n".join(texts).encode()
    ranks = {bytes([byte]): byte for byte in range(256)}
    while len(ranks) < 2500:
        start, length = draw.randrange(len(corpus) - 12), draw.randrange(2, 12)
        span, cut = corpus[start : start + length], draw.randrange(1, length)
        for part in (span[:cut], span[cut:], span):
            ranks.setdefault(part, len(ranks))
    return ranks


def write_ranks(ranks: dict[bytes, int], path: Path) -> Path:
    file = path / "test.tiktoken"
    file.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    return file


@pytest.mark.parametrize("pattern", [PATTERNS["gpt4"], GPT2])
@pytest.mark.parametrize("vocabulary", ["trained", "random_merges"])
def test_ids_are_those_of_tiktoken(
    vocabulary: str, pattern: str, texts: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    tiktoken = pytest.importorskip("tiktoken", reason="needs tiktoken to compare with")
    ranks = request.getfixturevalue(vocabulary)
    special = {EOS: len(ranks) + 1, "<|unused|>": len(ranks)}
    encoding = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    file = write_ranks(dict(sorted(ranks.items())), tmp_path)
    tok = Tokenizer.from_tiktoken(file, pattern=pattern, special_tokens=special)
    assert (tok.vocab_size, tok.special_tokens) == (encoding.n_vocab, special)
    tok.save(tmp_path / "saved")
    loaded, exported = Tokenizer.load(tmp_path / "saved"), tok.to_huggingface(split_special_tokens=True)
    for text in texts:
        expected = encoding.encode_ordinary(text)
        assert tok.encode(text).tolist() == loaded.encode(text).tolist() == exported(text)["input_ids"] == expected
        assert tok.decode(expected) == text
    assert exported.is_fast
    assert Tokenizer.from_tiktoken(ranks, pattern=pattern, special_tokens=special).vocabulary == tok.vocabulary


def test_broken_files_and_unknown_patterns_of_tiktoken_are_refused(trained: dict[bytes, int], tmp_path: Path) -> None:
    for pattern in (LATER_CL100K, r"\w+", "stripped"):
        with pytest.raises(ConfigurationError, match=r"pattern: no pre-tokenizer here cuts like .*gpt2, gpt2_digits"):
            Tokenizer.from_tiktoken(trained, pattern=pattern)
    file = write_ranks(trained, tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    for content, message in (
        ([*lines[:5], b"%%%% 5\n", *lines[6:]], "line 6: not a token in base64"),
        ([*lines[:5], *lines[6:]], "1 bytes are no tokens, such as 0x05"),
        ([*lines[:400], *lines[410:]], "10 ids up to 2499 are of no token: 400, 401, .*409; .*as special"),
    ):
        file.write_bytes(b"".join(content))
        with pytest.raises(DataError, match=rf"test.tiktoken.*{message}"):
            Tokenizer.from_tiktoken(file, pattern="gpt4")
    with pytest.raises(DataError, match=r"absent: unreadable"):
        Tokenizer.from_tiktoken(tmp_path / "absent", pattern="gpt4")
