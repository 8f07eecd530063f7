"""Tokens inside longer tokens, beside the slow definition."""

import numpy as np
import pytest

from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import count_tokens
from paribus.tokenization.vocabulary.containment import containing, own_shares
from paribus.tokenization.vocabulary.overlap import spellings

TEXTS = [
    "Arizona and Arizona, a zone of zonal winds",
    "亚利桑那州和亚利桑那河",
    "singing, ringing; a thing of Arizona",
] * 4


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    special = ["<|endoftext|>"]
    return Tokenizer.train(TEXTS, algorithm="bpe", vocab_size=320, pretokenizer="gpt2", special_tokens=special)


def test_shares_are_those_of_the_definition(tokenizer: Tokenizer) -> None:
    counts = count_tokens(tokenizer, TEXTS).ids
    spelled = {spelling: identity for (spelling, _), identity in spellings(tokenizer).items()}
    found = own_shares(tokenizer, counts)
    for spelling, identity in spelled.items():
        total = sum(int(counts[other]) for longer, other in spelled.items() if spelling in longer)
        expected = int(counts[identity]) / total if total else np.nan
        assert found[identity] == pytest.approx(expected, nan_ok=True)
    inside = [spelling for spelling, identity in spelled.items() if found[identity] == 0]
    assert b"zona" in inside or b"izona" in inside


def test_the_tokens_that_contain_another_are_told_the_most_frequent_first(tokenizer: Tokenizer) -> None:
    counts = count_tokens(tokenizer, TEXTS).ids
    found = containing(tokenizer, counts, b"zona")
    assert b" Arizona" in [one.token for one in found]
    assert [one.occurrences for one in found] == sorted((one.occurrences for one in found), reverse=True)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert containing(tokenizer, counts, "没有".encode()) == []


def test_special_tokens_have_no_share(tokenizer: Tokenizer) -> None:
    ordinary = set(spellings(tokenizer).values())
    special = [identity for identity in range(tokenizer.vocab_size) if identity not in ordinary]
    assert special
    shares = own_shares(tokenizer, np.ones(tokenizer.vocab_size, np.int64))
    assert np.isnan(shares[special]).all() and np.isfinite(np.delete(shares, special)).all()
