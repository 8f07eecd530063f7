"""Vocabularies of tiktoken: ids identical to tiktoken's, for trained merges and for any others."""

import base64
import random
from pathlib import Path
from typing import Any

import pytest

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.huggingface import final_pair
from paribus.tokenization.pretokenize import PATTERNS
from support.exported_texts import EOS, real_texts
from support.real_data import RealData

LATER_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return real_texts(real_data)


@pytest.fixture(scope="module")
def trained(texts: list[str]) -> dict[bytes, int]:
    tok = Tokenizer.train(texts, vocab_size=2500, pretokenizer="gpt4")
    return {entry.bytes: entry.id for entry in tok.vocabulary if entry.id is not None}


@pytest.fixture(scope="module")
def random_merges(texts: list[str]) -> dict[bytes, int]:
    """Tokens in no order of use: many are not what merging their own bytes leads to."""
    generator = random.Random(7)
    ranks = {bytes([byte]): byte for byte in range(256)}
    corpus = "\n".join(texts).encode()
    while len(ranks) < 2500:
        start, length = generator.randrange(len(corpus) - 12), generator.randrange(2, 12)
        span = corpus[start : start + length]
        cut = generator.randrange(1, length)
        for part in (span[:cut], span[cut:], span):
            ranks.setdefault(part, len(ranks))
    return ranks


def theirs(ranks: dict[bytes, int], pattern: str, special: dict[str, int]) -> Any:
    tiktoken = pytest.importorskip("tiktoken", reason="needs tiktoken to compare with")
    return tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)


def written(ranks: dict[bytes, int], path: Path) -> Path:
    file = path / "test.tiktoken"
    file.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    return file


@pytest.mark.parametrize("pattern", [PATTERNS["gpt4"], GPT2])
@pytest.mark.parametrize("made", ["trained", "random_merges"])
def test_ids_are_those_of_tiktoken(
    made: str, pattern: str, texts: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ranks = request.getfixturevalue(made)
    special = {EOS: len(ranks) + 1, "<|unused|>": len(ranks)}
    encoding = theirs(ranks, pattern, special)
    file = written(dict(sorted(ranks.items())), tmp_path)
    tok = Tokenizer.from_tiktoken(file, pattern=pattern, special_tokens=special)
    assert (tok.vocab_size, tok.special_tokens) == (encoding.n_vocab, special)
    tok.save(tmp_path / "saved")
    loaded = Tokenizer.load(tmp_path / "saved")
    exported = tok.to_huggingface(split_special_tokens=True)
    for text in texts:
        expected = encoding.encode_ordinary(text)
        assert tok.encode(text).tolist() == loaded.encode(text).tolist() == expected
        assert exported(text)["input_ids"] == expected
        assert tok.decode(expected) == text
    assert exported.is_fast
    assert Tokenizer.from_tiktoken(ranks, pattern=pattern, special_tokens=special).vocabulary == tok.vocabulary


def test_longest_first_on_a_vocabulary_of_tiktoken(trained: dict[bytes, int], texts: list[str]) -> None:
    tok = Tokenizer.from_tiktoken(trained, pattern="gpt4").with_encoder("longest_first")
    original = Tokenizer.train(texts, vocab_size=2500, pretokenizer="gpt4").with_encoder("longest_first")
    for text in texts:
        assert tok.encode(text).tolist() == original.encode(text).tolist()


def test_trained_merges_come_back(trained: dict[bytes, int], texts: list[str]) -> None:
    original = Tokenizer.train(texts, vocab_size=2500, pretokenizer="gpt4")
    assert Tokenizer.from_tiktoken(trained, pattern="gpt4").merges == original.merges


def test_a_token_that_merging_does_not_lead_to_has_no_rule() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"bc": 256, b"ab": 257, b"cd": 258, b"abcd": 259}
    assert final_pair(b"bc", ranks) == (b"b", b"c")
    assert final_pair(b"abcd", ranks) is None
    tok = Tokenizer.from_tiktoken(ranks, pattern="gpt2")
    assert tok.tokenize("abcd abcd") == [b"abcd", b" ", b"a", b"bc", b"d"]


def test_a_pattern_that_is_not_ours_is_refused(trained: dict[bytes, int]) -> None:
    for pattern in (LATER_CL100K, r"\w+", "stripped"):
        with pytest.raises(ConfigurationError, match=r"pattern: no pre-tokenizer here cuts like .*gpt2, gpt2_digits"):
            Tokenizer.from_tiktoken(trained, pattern=pattern)


def test_broken_files_are_refused_with_the_line(trained: dict[bytes, int], tmp_path: Path) -> None:
    file = written(trained, tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    for wrong, message in (
        (b"".join([*lines[:5], b"%%%% 5\n", *lines[6:]]), "line 6: not a token in base64"),
        (b"".join([*lines[:5], *lines[6:]]), "1 bytes are no tokens, such as 0x05"),
        (b"".join([*lines[:400], *lines[410:]]), "10 ids up to 2499 are of no token: 400, 401, .*409; .*as special"),
    ):
        file.write_bytes(wrong)
        with pytest.raises(DataError, match=rf"test.tiktoken.*{message}"):
            Tokenizer.from_tiktoken(file, pattern="gpt4")
    with pytest.raises(DataError, match=r"absent: unreadable"):
        Tokenizer.from_tiktoken(tmp_path / "absent", pattern="gpt4")


def test_special_tokens_fill_holes(trained: dict[bytes, int]) -> None:
    with pytest.raises(DataError, match=r"mergeable_ranks: 2 ids up to 2502 are of no token: 2500, 2501"):
        Tokenizer.from_tiktoken(trained, pattern="gpt4", special_tokens={EOS: 2502})
    named = {EOS: 2502, "<|unused_0|>": 2500, "<|unused_1|>": 2501}
    assert Tokenizer.from_tiktoken(trained, pattern="gpt4", special_tokens=named).vocab_size == 2503
