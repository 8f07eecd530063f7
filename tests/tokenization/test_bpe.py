"""BPE, Scaffold-BPE and WordPiece training against slow, obvious versions and Hugging Face's trainer."""

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.bpe import MergeTraining, train_bpe, train_scaffold_bpe, train_wordpiece
from paribus.tokenization.counts import SymbolCorpus, WordCounts, observed_characters
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.train import count_pretokens
from paribus.tokenization.vocabulary import fewest
from support.real_data import RealData, texts_of
from support.trained_words import word_counts


def count_pairs(words: list[tuple[list[int], int]]) -> Counter[tuple[int, int]]:
    counts: Counter[tuple[int, int]] = Counter()
    for symbols, count in words:
        for left, right in pairwise(symbols):
            counts[left, right] += count
    return counts


def count_symbols(words: list[tuple[list[int], int]]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for symbols, count in words:
        for symbol in symbols:
            counts[symbol] += count
    return counts


def replace(symbols: list[int], left: int, right: int, token: int) -> list[int]:
    made: list[int] = []
    position = 0
    while position < len(symbols):
        if symbols[position : position + 2] == [left, right]:
            made.append(token)
            position += 2
        else:
            made.append(symbols[position])
            position += 1
    return made


@dataclass
class ReferenceTraining:
    """Algorithm 1 of Scaffold-BPE, or BPE when `scaffolding` is off, by counting everything anew each step."""

    words: list[tuple[list[int], int]]
    tokens: list[str]
    units: int
    scaffolding: bool
    merges: list[tuple[int, int, int]] = field(default_factory=list)
    frequencies: dict[int, int] = field(default_factory=dict)
    scaffold: set[int] = field(default_factory=set)

    def head(self) -> tuple[int, bool, tuple[int, ...]] | None:
        live = count_symbols(self.words)
        queue = [(-count, False, pair) for pair, count in count_pairs(self.words).items()]
        queue += [(-live[token], True, (token,)) for token in self.scaffold if live[token]]
        return min(queue, default=None)

    def run(self, size: int) -> None:
        while len(self.tokens) - len(self.scaffold) < size and (head := self.head()) is not None:
            _, pushed_back, ranks = head
            if pushed_back:
                self.scaffold.remove(ranks[0])
            else:
                self.merge(ranks[0], ranks[1])

    def merge(self, left: int, right: int) -> None:
        string = self.tokens[left] + self.tokens[right]
        known = string in self.tokens
        if not known:
            self.tokens.append(string)
        token = self.tokens.index(string)
        if not any(merge[:2] == (left, right) for merge in self.merges):
            self.merges.append((left, right, token))
        before = count_symbols(self.words)[token]
        self.words = [(replace(symbols, left, right, token), count) for symbols, count in self.words]
        live = count_symbols(self.words)
        self.frequencies.setdefault(token, live[token] - before)
        if not self.scaffolding:
            return
        if token in self.scaffold and live[token] >= -self.head()[0]:
            self.scaffold.remove(token)
        for parent in (left, right):
            head = self.head()
            if parent >= self.units and head is not None and live[parent] < -head[0]:
                self.scaffold.add(parent)


def reference_training(
    words: Mapping[str, int], alphabet: Sequence[str], size: int, *, scaffolding: bool
) -> ReferenceTraining:
    ranks = {unit: rank for rank, unit in enumerate(alphabet)}
    as_symbols = [([ranks[unit] for unit in word], count) for word, count in words.items()]
    training = ReferenceTraining(as_symbols, list(alphabet), len(alphabet), scaffolding)
    training.run(size)
    return training


def huggingface_merges(words: Mapping[str, int], size: int) -> list[tuple[bytes, bytes]]:
    """Merges of Hugging Face's `BpeTrainer` on byte pre-tokens, the bytes as characters in byte order."""
    first, separator = 0x4E00, "|"

    def spelled(word: str) -> str:
        return "".join(chr(first + byte) for byte in word.encode("utf-8"))

    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Split(separator, "removed")
    alphabet = [chr(first + byte) for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False, special_tokens=[])
    lines = (separator.join([spelled(word)] * count) for word, count in words.items())
    backend.train_from_iterator(lines, trainer)
    merges = json.loads(backend.to_str())["model"]["merges"]
    return [tuple(bytes(ord(unit) - first for unit in side) for side in merge) for merge in merges]


COUNTS = st.one_of(st.integers(1, 9), st.integers(2**31, 2**42))
WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=12), COUNTS, max_size=8)
ABC = np.array([ord(letter) for letter in "abc"])


def character_corpus(words: Mapping[str, int]) -> SymbolCorpus:
    return SymbolCorpus.of_characters(word_counts(words), ABC)


def byte_merges(words: WordCounts, size: int) -> list[tuple[bytes, bytes]]:
    training = train_bpe(SymbolCorpus.of_bytes(words), size)
    units, offsets = training.unit_sequences()
    spelled = [bytes(units[begin:end].tolist()) for begin, end in pairwise(offsets.tolist())]
    return [(spelled[left], spelled[right]) for left, right, _ in training.merges.tolist()]


def strings(training: MergeTraining, alphabet: str) -> list[str]:
    units, offsets = training.unit_sequences()
    spelled = "".join(alphabet[unit] for unit in units.tolist())
    return [spelled[begin:end] for begin, end in pairwise(offsets.tolist())]


def test_pair_counts_include_overlaps_and_token_counts_do_not() -> None:
    training = train_bpe(character_corpus({"aaa": 3, "bc": 5, "ab": 1}), 5)
    assert strings(training, "abc")[3:] == ["aa", "bc"]
    assert training.frequencies.tolist()[3:] == [3, 5]


@pytest.mark.parametrize("threshold", [None, 4, 1 << 33])
@given(words=WORDS, size=st.integers(3, 30))
def test_bpe_training_equals_counting_everything_anew_each_step(
    threshold: int | None, words: dict[str, int], size: int
) -> None:
    training = train_bpe(character_corpus(words), size, threshold=threshold)
    reference = reference_training(words, "abc", size, scaffolding=False)
    assert strings(training, "abc") == reference.tokens
    assert list(map(tuple, training.merges.tolist())) == reference.merges
    assert {rank: int(training.frequencies[rank]) for rank in reference.frequencies} == reference.frequencies
    assert training.stopped == ("vocab_size" if len(reference.tokens) >= size else "no_pair_left")


@pytest.mark.parametrize(
    ("kind", "pretokenizer", "documents"), [("english", "gpt2_digits", 100), ("declarations", "gpt4", 40)]
)
def test_the_merge_list_equals_hugging_faces_on_real_text(
    real_data: RealData, kind: str, pretokenizer: str, documents: int
) -> None:
    texts = list(islice(texts_of(getattr(real_data, kind)), documents))
    pretokens = PatternPretokenizer(pretokenizer)
    words = Counter(piece for text in texts for piece in pretokens.pieces(text))
    assert byte_merges(count_pretokens(texts, pretokens), 2_000) == huggingface_merges(words, 2_000)


@pytest.mark.parametrize("threshold", [None, 1, 1000])
def test_bpe_of_a_word_of_a_million_letters_takes_no_quadratic_time(threshold: int | None) -> None:
    draw = random.Random(0)
    for word in ("a" * 1_000_000, "ab" * 500_000, "".join(draw.choices("abc", k=1_000_000))):
        assert train_bpe(character_corpus({word: 1}), 400, threshold=threshold).lengths.max() > 4


def test_with_continuation_marks_a_unit_inside_a_word_is_another_one() -> None:
    words = word_counts({"aa": 4, "ba": 3})
    characters = SymbolCorpus.of_characters(words, observed_characters(words), marked=True)
    assert characters.symbols.tolist() == [-1, 0, 2, -1, 1, 2, -1]
    assert characters.frequencies.tolist() == [4, 3, 7, 0]
    assert train_bpe(characters, 6).merges.tolist() == [[0, 2, 4], [1, 2, 5]]
    assert SymbolCorpus.of_bytes(words, marked=True).symbols.tolist() == [-1, 97, 256 + 97, -1, 98, 256 + 97, -1]


def test_a_vocabulary_smaller_than_the_alphabet_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"tokenizer.vocab_size: 256 .* 256 units and 1 special.* 257"):
        Tokenizer.train(["text"], vocab_size=256, special_tokens=["<eos>"])
    with pytest.raises(ConfigurationError, match=r"vocab_size: 100 .* 259 units, the 256 bytes .* at least 259"):
        Tokenizer.train(["abc"], vocab_size=100, unit="character", unknown="byte_fallback")


FEW_WORDS = st.dictionaries(
    st.text("abcd", min_size=1, max_size=14), COUNTS | st.integers(2**56 - 3, 2**56), max_size=2
)
MANY_WORDS = st.dictionaries(st.text("abcd", min_size=1, max_size=14), st.integers(1, 30), max_size=12)


def reference_wordpiece(words: Mapping[str, int], alphabet: str, size: int) -> list[tuple[int, int, int]]:
    """Merges by likelihood, every score a fraction that is counted anew."""
    symbols = [([alphabet.index(unit) for unit in word], count) for word, count in words.items()]
    merges: list[tuple[int, int, int]] = []
    while len(alphabet) + len(merges) < size:
        live, pairs = count_symbols(symbols), count_pairs(symbols)
        if not pairs:
            break
        score = {pair: Fraction(count, live[pair[0]] * live[pair[1]]) for pair, count in pairs.items()}
        left, right = min(pairs, key=lambda pair: (-score[pair], -pairs[pair], pair))
        token = len(alphabet) + len(merges)
        merges.append((left, right, token))
        symbols = [(replace(word, left, right, token), count) for word, count in symbols]
    return merges


def wordpiece_merges(words: Mapping[str, int], size: int) -> list[tuple[int, ...]]:
    corpus = SymbolCorpus.of_characters(word_counts(words), np.array([ord(letter) for letter in "abcd"]))
    return list(map(tuple, train_wordpiece(corpus, size).merges.tolist()))


@given(words=st.one_of(FEW_WORDS, MANY_WORDS), size=st.integers(4, 40))
def test_wordpiece_training_equals_scoring_everything_anew_each_step(words: dict[str, int], size: int) -> None:
    assert wordpiece_merges(words, size) == reference_wordpiece(words, "abcd", size)


def test_wordpiece_compares_scores_that_are_equal_as_floats() -> None:
    words = {"ab": 2**52, "a": 1, "cd": 2**52 + 1, "c": 1, "ba": 1}
    assert wordpiece_merges(words, 6) == reference_wordpiece(words, "abcd", 6)


def test_wordpiece_of_a_word_of_a_million_letters_takes_no_quadratic_time() -> None:
    assert wordpiece_merges({"ab" * 60: 1}, 100) == reference_wordpiece({"ab" * 60: 1}, "abcd", 100)
    assert len(wordpiece_merges({"ab" * 500_000: 1}, 100)) > 10


SCAFFOLD_WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=14), st.integers(1, 30), max_size=10)
ARIZONA = {"Arizona": 97, "zona": 3, "zon": 200, "xy": 50, "xyw": 2, "pq": 40}
ALPHABET = "".join(sorted(set("".join(ARIZONA))))


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
@given(words=SCAFFOLD_WORDS, size=st.integers(3, 24))
def test_scaffold_bpe_training_equals_counting_everything_anew_each_step(
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
