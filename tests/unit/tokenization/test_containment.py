"""Tokens inside longer tokens, beside the slow definition."""

import numpy as np
import pytest

from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import containing, count_tokens, own_shares, spellings
from paribus.tokenization.vocabulary import Token

TEXTS = [
    "Arizona and Arizona, a zone of zonal winds",
    "亚利桑那州和亚利桑那河",
    "singing, ringing; a thing of Arizona",
] * 4


@pytest.fixture(scope="module", params=["byte", "character"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    size = {"byte": 320, "character": 356}[request.param]
    return Tokenizer.train(
        TEXTS, vocab_size=size, pretokenizer="gpt2", special_tokens=["<|endoftext|>"], unit=request.param
    )


def entries(tokenizer: Tokenizer) -> dict[int, Token]:
    """The tokens by id, special ones out."""
    return {entry.id: entry for entry in tokenizer.vocabulary if entry.id is not None and entry.kind != "special"}


def fallbacks(tokenizer: Tokenizer) -> list[int]:
    """Ids of the bytes of a vocabulary of characters."""
    return [identity for identity, entry in entries(tokenizer).items() if entry.kind == "fallback"]


def test_shares_are_those_of_the_definition(tokenizer: Tokenizer) -> None:
    counts, known = count_tokens(tokenizer, TEXTS).ids, entries(tokenizer)
    found = own_shares(tokenizer, counts)
    whole = {identity: entry for identity, entry in known.items() if identity not in fallbacks(tokenizer)}
    for identity, part in whole.items():
        total = sum(int(counts[other]) for other, longer in whole.items() if part.bytes in longer.bytes)
        assert found[identity] == pytest.approx(int(counts[identity]) / total if total else np.nan, nan_ok=True)
    inside = [entry.bytes for identity, entry in known.items() if found[identity] == 0]
    assert b"zona" in inside or b"izona" in inside


def test_a_byte_of_an_unknown_character_is_part_of_no_character() -> None:
    tokenizer = Tokenizer.train(TEXTS, vocab_size=356, pretokenizer="gpt2", unit="character")
    counts = count_tokens(tokenizer, ["亚利桑那 ş"]).ids
    used = [identity for identity in fallbacks(tokenizer) if counts[identity]]
    assert [entries(tokenizer)[identity].bytes for identity in used] == [b"\x9f", b"\xc5"]
    shares = own_shares(tokenizer, counts)
    assert {*shares[used].tolist()} == {1.0}
    assert np.isnan(shares[[identity for identity in fallbacks(tokenizer) if identity not in used]]).all()


def test_the_tokens_that_contain_another_are_told_the_most_frequent_first(tokenizer: Tokenizer) -> None:
    counts = count_tokens(tokenizer, TEXTS).ids
    found = containing(tokenizer, counts, b"zona")
    assert b" Arizona" in [one.token for one in found]
    assert [one.occurrences for one in found] == sorted((one.occurrences for one in found), reverse=True)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert containing(tokenizer, counts, "没有".encode()) == []


def test_every_occurrence_belongs_to_what_it_is_spelled(tokenizer: Tokenizer) -> None:
    counts = count_tokens(tokenizer, TEXTS).ids
    occurs = {entry.bytes: int(counts[identity]) for identity, entry in entries(tokenizer).items() if counts[identity]}
    assert b"," in occurs
    assert {one.token: one.occurrences for one in containing(tokenizer, counts, b"") if one.occurrences} == occurs


def test_special_tokens_have_no_share(tokenizer: Tokenizer) -> None:
    ordinary = {identity for ids in spellings(tokenizer).values() for identity in ids}
    special = {*range(tokenizer.vocab_size)} - ordinary
    assert len(special) == 1
    shares = own_shares(tokenizer, np.ones(tokenizer.vocab_size, np.int64))
    assert {*np.flatnonzero(np.isnan(shares)).tolist()} == special
