"""What training hands over as a vocabulary: the order of units, continuation forms, kinds, parents; and whole words."""

from collections import Counter

import pytest

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.settings import Algorithm
from paribus.tokenization.train import TrainedVocabulary, TrainingRequest, count_pretokens, train_vocabulary
from paribus.tokenization.vocabulary import ENTRY_KINDS, UnitKind, Unknown
from support.real_data import RealData
from support.trained_words import word_counts

WORDS = {"höher": 7, "hoch": 5, "höhere": 3, "höchste": 2, "😀": 4, "日本": 6, "日本語": 3}
CHARACTERS = sorted(set("".join(WORDS)))
ALGORITHMS: tuple[Algorithm, ...] = ("bpe", "scaffold_bpe", "wordpiece", "unigram")


def trained(
    algorithm: Algorithm, unit: UnitKind, unknown: Unknown | None, *, continuation: bool, extra: int = 8
) -> TrainedVocabulary:
    single = 256 if unit == "byte" else len(CHARACTERS) + 256 * (unknown == "byte_fallback")
    request = TrainingRequest(
        algorithm=algorithm,
        vocab_size=single * (1 + continuation) + 1 + (unknown == "token") + extra,
        unit=unit,
        unknown=unknown,
        special_tokens=("<eos>",),
        continuation=continuation,
    )
    return train_vocabulary(word_counts(WORDS), request)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("continuation", [False, True])
def test_units_are_characters_by_codepoint_then_fallback_bytes_then_continuation_forms(
    algorithm: Algorithm, continuation: bool
) -> None:
    training = trained(algorithm, "character", "byte_fallback", continuation=continuation)
    columns = training.vocabulary.columns
    single = [character.encode() for character in CHARACTERS] + [bytes([byte]) for byte in range(256)]
    count = len(single) * (1 + continuation)
    assert columns.spellings[:count] == tuple(single * (1 + continuation))
    kinds = Counter(ENTRY_KINDS[kind] for kind in columns.kinds[:count])
    assert kinds == {"unit": len(CHARACTERS) * (1 + continuation), "fallback": 256 * (1 + continuation)}
    assert columns.continuations[:count].tolist() == [False] * len(single) + [True] * (count - len(single))
    assert training.vocabulary.size == count + 9 or training.stopped == "exhausted"
    assert columns.spellings[-1] == b"<eos>"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_with_continuation_marks_occur_inside_words_and_others_begin_them(algorithm: Algorithm) -> None:
    columns = trained(algorithm, "byte", None, continuation=True).vocabulary.columns
    words = [word.encode() for word in WORDS]
    for spelling, inside in list(zip(columns.spellings, columns.continuations, strict=True))[512:-1]:
        assert any(spelling in word[1:] if inside else word.startswith(spelling) for word in words)


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe", "wordpiece"])
def test_frequencies_of_units_are_their_occurrences_and_parents_spell_their_token(algorithm: Algorithm) -> None:
    vocabulary = trained(algorithm, "character", "token", continuation=False).vocabulary
    columns = vocabulary.columns
    occurrences = [sum(word.count(character) * count for word, count in WORDS.items()) for character in CHARACTERS]
    assert columns.frequencies[: len(CHARACTERS)].tolist() == occurrences
    assert [entry.bytes for entry in vocabulary][-2:] == [b"<unk>", b"<eos>"]
    tokens = [entry for entry in vocabulary if entry.kind == "token"]
    assert len(vocabulary.merges) == len(tokens) > 0
    for entry in tokens:
        assert entry.parents is not None and entry.frequency > 0
        assert b"".join(columns.spellings[parent] for parent in entry.parents) == entry.bytes


def test_byte_fallback_is_taken_where_it_fits() -> None:
    for extra, unknown in ((255, "refuse"), (256, "byte_fallback")):
        size = len(CHARACTERS) + extra
        request = TrainingRequest(algorithm="bpe", vocab_size=size, unit="character", unknown=None, special_tokens=())
        assert train_vocabulary(word_counts(WORDS), request).unknown == unknown


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe", "wordpiece"])
@pytest.mark.parametrize("unit", ["byte", "character"])
def test_threads_and_the_order_of_texts_change_nothing(
    real_data: RealData, algorithm: Algorithm, unit: UnitKind
) -> None:
    texts = real_data.declaration_texts(100)
    request = TrainingRequest(
        algorithm=algorithm, vocab_size=6_000, unit=unit, unknown="refuse", special_tokens=(), continuation=True
    )
    pretokenizer = PatternPretokenizer("stripped")
    first = train_vocabulary(count_pretokens(texts, pretokenizer), request).vocabulary
    second = train_vocabulary(count_pretokens(texts[::-1], pretokenizer, threads=2), request).vocabulary
    assert first.size == 6_000
    assert first == second


TEXTS = ["i hug pugs", "hugging pugs is fun", "i make puns"]


def words(size: int, unit: str = "character", unknown: str | None = "token") -> Tokenizer:
    return Tokenizer.train(
        TEXTS, algorithm="words", vocab_size=size, unit=unit, unknown=unknown, pretokenizer="punctuation",
        special_tokens=["<eos>"],
    )  # type: ignore[arg-type]  # fmt: skip


def test_the_commonest_words_are_tokens_and_others_are_unknown() -> None:
    tok = words(5)
    assert [entry.bytes for entry in tok.vocabulary] == [b" pugs", b"i", b" fun", b"<unk>", b"<eos>"]
    assert [entry.frequency for entry in tok.vocabulary] == [2, 2, 1, 0, 0]
    assert tok.encode("i hug pugs").tolist() == [1, 3, 0]
    for encoder in ("longest_first", "fewest", "merge_rank", "viterbi"):
        with pytest.raises(ConfigurationError, match="encoder="):
            tok.with_encoder(encoder)  # type: ignore[arg-type]


def test_without_an_unknown_token_other_words_are_spelled_in_units() -> None:
    for unit, size in (("byte", 259), ("character", 13 + 256 + 3)):
        tok = words(size, unit, "byte_fallback")
        assert tok.tokenize("i pugs hug") == [b"i", b" pugs", b" ", b"h", b"u", b"g"]
        for text in ("i hug pugs", "é", "a pugs. 世界"):
            assert tok.decode(tok.encode(text)) == text
