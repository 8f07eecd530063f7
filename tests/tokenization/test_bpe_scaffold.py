"""Scaffold-BPE: demotion, re-admission, demolition, and its relation to plain BPE."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.tokenization import Tokenizer
from paribus.tokenization.bpe import MergeTraining, train_scaffold_bpe
from paribus.tokenization.counts import SymbolCorpus
from paribus.tokenization.vocabulary import fewest
from support.tokenization_references import reference_training
from support.trained_words import word_counts

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=14), st.integers(1, 30), max_size=10)
ARIZONA = {"Arizona": 97, "zona": 3, "zon": 200, "xy": 50, "xyw": 2, "pq": 40}
ALPHABET = "".join(sorted(set("".join(ARIZONA))))


def strings(training: MergeTraining, alphabet: str) -> list[str]:
    units, offsets = training.unit_sequences()
    spelled = "".join(alphabet[unit] for unit in units.tolist())
    return [spelled[begin:end] for begin, end in pairwise(offsets.tolist())]


def scaffolds(training: MergeTraining, alphabet: str) -> set[str]:
    return {token for token, scaffold in zip(strings(training, alphabet), training.scaffold, strict=True) if scaffold}


def train(words: dict[str, int], alphabet: str, size: int, threshold: int | None = None) -> MergeTraining:
    corpus = SymbolCorpus.of_characters(word_counts(words), np.array([ord(letter) for letter in alphabet]))
    return train_scaffold_bpe(corpus, size, threshold=threshold)


def test_a_token_that_a_longer_one_used_up_becomes_a_scaffold() -> None:
    training = train(ARIZONA, ALPHABET, len(ALPHABET) + 4)
    created = dict(zip(strings(training, ALPHABET), training.frequencies.tolist(), strict=True))
    assert (created["zona"], created["Arizona"]) == (100, 97)
    assert "zona" in scaffolds(training, ALPHABET) and "zon" not in scaffolds(training, ALPHABET)


def test_a_scaffold_alone_is_demolished_to_its_first_normal_parents() -> None:
    texts = [word for word, count in ARIZONA.items() for _ in range(count)]
    settings = {"unit": "character", "unknown": "refuse", "pretokenizer": "whitespace"}
    tok = Tokenizer.train(texts, algorithm="scaffold_bpe", vocab_size=len(ALPHABET) + 4, **settings)  # type: ignore[arg-type]
    assert tok.tokenize("zona") == [b"zon", b"a"]
    assert tok.tokenize("Arizona") == [b"Arizona"]
    zona = next(entry for entry in tok.vocabulary if entry.bytes == b"zona")
    assert (zona.id, zona.scaffold, zona.frequency) == (None, True, 100)


def test_a_pushed_back_token_is_readmitted_at_its_original_rank() -> None:
    small, large = (train(ARIZONA, ALPHABET, len(ALPHABET) + extra) for extra in (4, 5))
    assert "zona" in scaffolds(small, ALPHABET)
    assert "zona" not in scaffolds(large, ALPHABET)
    assert strings(small, ALPHABET).index("zona") == strings(large, ALPHABET).index("zona")


@pytest.mark.parametrize("threshold", [None, 3, 1 << 33])
@given(words=WORDS, size=st.integers(3, 24))
def test_training_equals_counting_everything_anew_each_step(
    threshold: int | None, words: dict[str, int], size: int
) -> None:
    training = train(words, "abc", size, threshold)
    reference = reference_training(words, "abc", size, scaffolding=True)
    assert strings(training, "abc") == reference.tokens
    assert list(map(tuple, training.merges.tolist())) == reference.merges
    assert set(np.flatnonzero(training.scaffold).tolist()) == reference.scaffold
    assert {rank: int(training.frequencies[rank]) for rank in reference.frequencies} == reference.frequencies
    assert training.stopped == ("vocab_size" if (~training.scaffold).sum() >= size else "no_pair_left")


def test_the_shortest_demolition_takes_the_fewest_tokens_and_the_longest_first() -> None:
    normal = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5}
    assert fewest("abcbc", normal) == (5, 4)
    assert fewest("abc", {name: rank for name, rank in normal.items() if name != "abc"}) == (3, 2)
