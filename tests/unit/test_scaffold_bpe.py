"""Scaffold-BPE: demotion, re-admission, demolition, and its relation to plain BPE."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenization_references import reference_training

from paribus.tokenization import Tokenizer
from paribus.tokenization.bpe import BPETrainer, Training
from paribus.tokenization.demolition import fewest
from paribus.tokenization.scaffold_bpe import ScaffoldBPETrainer

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=14), st.integers(1, 30), max_size=10)
ARIZONA = {"Arizona": 97, "zona": 3, "zon": 200, "xy": 50, "xyw": 2, "pq": 40}
ALPHABET = sorted(set("".join(ARIZONA)))


def scaffolds(training: Training) -> set[str]:
    return {token for token, scaffold in zip(training.tokens, training.scaffold, strict=True) if scaffold}


def train(words: dict[str, int], alphabet: Sequence[str], size: int) -> Training:
    return ScaffoldBPETrainer(words, alphabet).train(size)


def test_a_token_that_a_longer_one_used_up_becomes_a_scaffold() -> None:
    training = train(ARIZONA, ALPHABET, len(ALPHABET) + 4)
    created = dict(zip(training.tokens, training.frequencies, strict=True))
    assert created["zona"] == 100
    assert created["Arizona"] == 97
    assert "zona" in scaffolds(training)
    assert "zon" not in scaffolds(training)


def test_a_scaffold_alone_is_demolished_to_its_first_normal_parents() -> None:
    texts = [word for word, count in ARIZONA.items() for _ in range(count)]
    tok = Tokenizer.train(
        texts,
        algorithm="scaffold_bpe",
        vocab_size=len(ALPHABET) + 4,
        unit="character",
        unknown="refuse",
        pretokenizer="whitespace",
    )
    assert tok.tokenize("zona") == [b"zon", b"a"]
    assert tok.tokenize("Arizona") == [b"Arizona"]
    zona = next(entry for entry in tok.vocabulary if entry.bytes == b"zona")
    assert (zona.id, zona.scaffold, zona.frequency) == (None, True, 100)


def test_a_pushed_back_token_is_readmitted_at_its_original_rank() -> None:
    small, large = (train(ARIZONA, ALPHABET, len(ALPHABET) + extra) for extra in (4, 5))
    assert "zona" in scaffolds(small)
    assert "zona" not in scaffolds(large)
    assert small.tokens.index("zona") == large.tokens.index("zona")


@pytest.mark.parametrize(("others", "scaffold"), [(4, False), (5, False), (6, True)])
def test_a_scaffold_spelled_again_is_readmitted_only_if_it_reaches_the_head(others: int, scaffold: bool) -> None:
    trainer = ScaffoldBPETrainer({"abc": 5, "xy": others}, ("a", "b", "c", "x", "y", "abc"))
    trainer.scaffold[5] = True
    trainer.merge(trainer.merge(0, 1), 2)
    assert trainer.scaffold[5] is scaffold
    assert trainer.live[5] == 5


@settings(max_examples=300, deadline=None)
@given(words=WORDS, size=st.integers(3, 24))
def test_training_equals_counting_everything_anew_each_step(words: dict[str, int], size: int) -> None:
    training = train(words, "abc", size)
    reference = reference_training(words, "abc", size, scaffolding=True)
    assert list(training.tokens) == reference.tokens
    assert list(training.merges) == reference.merges
    assert scaffolds(training) == {reference.tokens[rank] for rank in reference.scaffold}
    assert {rank: training.frequencies[rank] for rank in reference.frequencies} == reference.frequencies


@settings(max_examples=50, deadline=None)
@given(words=WORDS, size=st.integers(3, 24))
def test_its_merges_are_those_of_bpe_carried_further(words: dict[str, int], size: int) -> None:
    scaffold, plain = train(words, "abc", size), BPETrainer(words, "abc").train(size)
    assert scaffold.merges[: len(plain.merges)] == plain.merges
    assert scaffold.tokens[: len(plain.tokens)] == plain.tokens


def test_the_expanded_vocabulary_is_the_normal_tokens_and_the_scaffolds() -> None:
    texts = ["in Arizona the zones of Amazonian Arizonans are zonal"] * 3 + ["an amazing amazon"] * 5
    tok = Tokenizer.train(texts, algorithm="scaffold_bpe", vocab_size=264, special_tokens=["<eod>"])
    scaffold = [entry for entry in tok.vocabulary if entry.scaffold]
    assert scaffold
    assert tok.vocab_size == 264
    assert len(tok.vocabulary) == 264 + len(scaffold)
    assert sorted(entry.id for entry in tok.vocabulary if entry.id is not None) == list(range(264))
    assert not any(entry.scaffold for entry in tok.vocabulary[:256])
    for entry in tok.vocabulary:
        if entry.parents is not None:
            left, right = entry.parents
            assert tok.vocabulary[left].bytes + tok.vocabulary[right].bytes == entry.bytes
    for text in texts:
        assert b"".join(tok.tokenize(text)) == text.encode()


def test_the_shortest_demolition_takes_the_fewest_tokens_and_the_longest_first() -> None:
    normal = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5}
    assert fewest("abcbc", normal) == (5, 4)
    assert fewest("abc", {name: rank for name, rank in normal.items() if name != "abc"}) == (3, 2)


def test_the_shortest_demolition_never_takes_more_tokens_than_the_parents() -> None:
    texts = ["in Arizona the zones of Amazonian Arizonans are zonal"] * 3 + ["an amazing amazon"] * 5
    by_parents, shortest = (
        Tokenizer.train(texts, algorithm="scaffold_bpe", vocab_size=264, demolish=demolish)
        for demolish in ("parents", "shortest")
    )
    for text in texts:
        assert len(shortest.encode(text)) <= len(by_parents.encode(text))
        assert shortest.decode(shortest.encode(text)) == text
