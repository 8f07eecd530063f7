"""What training hands over as a vocabulary: the order of units, continuation forms, kinds, parents, scores."""

from collections import Counter

import pytest

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.settings import Algorithm, EncoderName
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
def test_character_units_are_by_codepoint_then_fallback_bytes_then_continuation_forms(
    algorithm: Algorithm, continuation: bool
) -> None:
    made = trained(algorithm, "character", "byte_fallback", continuation=continuation)
    columns = made.vocabulary.columns
    single = [character.encode() for character in CHARACTERS] + [bytes([byte]) for byte in range(256)]
    count = len(single) * (1 + continuation)
    assert columns.spellings[:count] == tuple(single * (1 + continuation))
    kinds = Counter(ENTRY_KINDS[kind] for kind in columns.kinds[:count])
    assert kinds == {"unit": len(CHARACTERS) * (1 + continuation), "fallback": 256 * (1 + continuation)}
    assert columns.continuations[: len(single)].sum() == 0
    assert columns.continuations[len(single) : count].all()
    assert made.vocabulary.size == count + 9 or made.stopped == "exhausted"
    assert columns.spellings[-1] == b"<eos>"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_with_continuation_marks_tokens_spell_parts_of_words_where_they_stand(algorithm: Algorithm) -> None:
    columns = trained(algorithm, "byte", None, continuation=True).vocabulary.columns
    spelled = [word.encode() for word in WORDS]
    for rank in range(512, len(columns.spellings) - 1):
        inside = [word[1:] if columns.continuations[rank] else word for word in spelled]
        if columns.continuations[rank]:
            assert any(columns.spellings[rank] in word for word in inside)
        else:
            assert any(word.startswith(columns.spellings[rank]) for word in inside)


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe", "wordpiece"])
def test_frequencies_of_units_are_their_occurrences_and_parents_spell_their_token(algorithm: Algorithm) -> None:
    vocabulary = trained(algorithm, "character", "token", continuation=False).vocabulary
    occurrences = Counter[str]()
    for word, count in WORDS.items():
        for character in word:
            occurrences[character] += count
    columns = vocabulary.columns
    assert columns.frequencies[: len(CHARACTERS)].tolist() == [occurrences[character] for character in CHARACTERS]
    assert [entry.bytes for entry in vocabulary][-2:] == [b"<unk>", b"<eos>"]
    made = [entry for entry in vocabulary if entry.kind == "token"]
    assert made
    for entry in made:
        assert entry.parents is not None
        assert b"".join(columns.spellings[parent] for parent in entry.parents) == entry.bytes
        assert entry.frequency > 0
    assert len(vocabulary.merges) == len(made)


def test_byte_fallback_is_taken_where_it_fits() -> None:
    for extra, unknown in ((255, "refuse"), (256, "byte_fallback")):
        request = TrainingRequest(
            algorithm="bpe",
            vocab_size=len(CHARACTERS) + extra,
            unit="character",
            unknown=None,
            special_tokens=(),
        )
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


# A token a word: which words are tokens, and what becomes of the others.

TEXTS = ["i hug pugs", "hugging pugs is fun", "i make puns"]


def spelled(tok: Tokenizer, text: str) -> list[str]:
    return [token.decode() for token in tok.tokenize(text)]


def words(size: int, unit: str = "character", unknown: str | None = "token") -> Tokenizer:
    return Tokenizer.train(
        TEXTS, algorithm="words", vocab_size=size, unit=unit, unknown=unknown, pretokenizer="punctuation",
        special_tokens=["<eos>"],
    )  # type: ignore[arg-type]  # fmt: skip


def test_the_commonest_pretokens_are_tokens_and_others_are_unknown() -> None:
    tok = words(5)
    assert [entry.bytes for entry in tok.vocabulary] == [b" pugs", b"i", b" fun", b"<unk>", b"<eos>"]
    assert [entry.frequency for entry in tok.vocabulary] == [2, 2, 1, 0, 0]
    assert spelled(tok, "i hug pugs") == ["i", "\ufffd", " pugs"]
    assert tok.encode("z zz").tolist() == [3, 3]


@pytest.mark.parametrize(("unit", "size"), [("byte", 259), ("character", 13 + 256 + 3)])
def test_without_an_unknown_token_other_words_are_spelled_in_units(unit: str, size: int) -> None:
    tok = words(size, unit, "byte_fallback")
    assert spelled(tok, "i pugs hug") == ["i", " pugs", *" hug"]
    for text in ("i hug pugs", "é", "a pugs. 世界"):
        assert tok.decode(tok.encode(text)) == text


def test_the_tokenizer_is_stored_and_stopped_says_whether_words_ran_out(tmp_path: object) -> None:
    with pytest.warns(UserWarning, match="vocab_size=50"):
        tok = words(50)
    tok.save(f"{tmp_path}/words")
    assert tok.settings.stopped == "no_pair_left"
    assert Tokenizer.load(f"{tmp_path}/words").encode("i hug zebras").tolist() == tok.encode("i hug zebras").tolist()


@pytest.mark.parametrize("encoder", ["longest_first", "fewest", "merge_rank", "viterbi"])
def test_encoders_that_need_units_or_merges_are_refused(encoder: EncoderName) -> None:
    with pytest.raises(ConfigurationError, match="encoder="):
        words(5).with_encoder(encoder)
