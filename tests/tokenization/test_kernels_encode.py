"""Every compiled encoder against its slow reference, on real text and on random vocabularies."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.tokenization import Tokenizer
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.settings import Algorithm, Candidates, EncoderName, Settings
from paribus.tokenization.vocabulary import Token, Vocabulary
from support import encoder_references as reference
from support.encoder_references import fewest, left_to_right, longest_first, merge_rank
from support.real_data import RealData

CODE = "def f(x):\n    return {k: v[::-1] for k, v in x.items()}  # naïve\n" * 2
EMOJI = "👨‍👩‍👧 ok 😀😃 flags 🇩🇪🇮🇳 é e\u0301 \U0001f9d1\U0001f3fd\u200d\U0001f52c\n" * 2
TITLES = ("Universal Declaration of Human", "世界人", "Allgemeine Erkl", "मानव अधिकारों", "الإعلان العالمي")
ENCODERS: list[EncoderName] = ["merge_rank", "longest_first", "left_to_right", "fewest"]


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    declarations = real_data.declaration_texts()
    return [*(next(text[:1500] for text in declarations if title in text[:200]) for title in TITLES), CODE, EMOJI]


def references(tok: Tokenizer) -> dict[str, Callable[[str], list[str] | None]]:
    """Reference encoders over byte units as Latin-1 strings."""
    tokens = {e.bytes.decode("latin-1") for e in tok.vocabulary if e.kind in ("unit", "token") and not e.scaffold}
    merges = [(left.decode("latin-1"), right.decode("latin-1")) for left, right in tok.merges]
    return {
        "merge_rank": lambda units: reference.merge_rank(units, merges),
        "longest_first": lambda units: reference.longest_first(units, tokens),
        "left_to_right": lambda units: reference.left_to_right(units, tokens),
        "fewest": lambda units: reference.fewest(units, tokens),
    }


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("pretokenizer", ["gpt2_digits", "gpt4", "whitespace"])
def test_real_text_in_many_scripts_equals_the_reference(
    texts: list[str], encoder: EncoderName, pretokenizer: str
) -> None:
    tok = Tokenizer.train(texts, vocab_size=700, pretokenizer=pretokenizer, encoder=encoder)
    expected = references(tok)[encoder]
    for piece in sorted({piece for text in texts for piece in PatternPretokenizer(pretokenizer).pieces(text)})[::7]:
        units = piece.encode().decode("latin-1")
        if len(units) <= 60:
            assert [token.decode("latin-1") for token in tok.tokenize(piece)] == expected(units)


def test_a_document_is_its_pretokens_one_after_another(texts: list[str]) -> None:
    trained = Tokenizer.train(texts, vocab_size=900)
    for encoder in ENCODERS:
        tok = trained.with_encoder(encoder)
        for text in texts:
            parts = [tok.encode(piece) for piece in PatternPretokenizer("gpt2_digits").pieces(text)]
            assert tok.encode(text).tolist() == np.concatenate(parts).tolist()


def test_ids_do_not_depend_on_threads_batches_or_earlier_texts(texts: list[str]) -> None:
    trained = Tokenizer.train(texts, algorithm="scaffold_bpe", vocab_size=800)
    for encoder in [*ENCODERS, "dropout"]:
        ids, offsets = trained.with_encoder(encoder).encode_batch(texts * 3)
        again, bounds = trained.with_encoder(encoder).encode_batch(texts * 3, threads=3)
        assert ids.tolist() == again.tolist() and offsets.tolist() == bounds.tolist()
        for number in range(len(texts) - 1, -1, -1):
            alone = trained.with_encoder(encoder).encode(texts[number])
            assert alone.tolist() == ids[offsets[number] : offsets[number + 1]].tolist()


def scored(tokens: dict[str, float]) -> Tokenizer:
    """A Unigram tokenizer over characters that takes a text as one pre-token."""
    units = sorted({unit for token in tokens for unit in token})
    entries = [
        Token(n, n, token.encode(), 0, None, False, "unit" if len(token) == 1 else "token", score=tokens[token])
        for n, token in enumerate([*units, *sorted(token for token in tokens if len(token) > 1)])
    ]
    return Tokenizer(Vocabulary.of(entries, (), "character"), settings("unigram", "viterbi"))


def settings(algorithm: Algorithm, encoder: EncoderName) -> Settings:
    return Settings(
        algorithm=algorithm, unit="character", unknown="refuse", pretokenizer="none", encoder=encoder, special_tokens=()
    )


SCORES = st.sampled_from([-1.0, -1.5, -2.0, -3.0, -4.25, -6.0])


@given(
    tokens=st.dictionaries(st.text("abc", min_size=1, max_size=5), SCORES, max_size=14),
    text=st.text("abc", min_size=1, max_size=24),
)
def test_viterbi_equals_the_reference_in_ties_too(tokens: dict[str, float], text: str) -> None:
    tokens = {"a": -4.0, "b": -4.5, "c": -2.0} | tokens
    tok = scored(tokens)
    assert [token.decode() for token in tok.tokenize(text)] == reference.viterbi(text, tokens)
    by_count = tok.with_encoder("fewest").tokenize(text)
    assert [token.decode() for token in by_count] == reference.fewest(text, set(tokens))


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe", "wordpiece", "unigram", "bytes"])
def test_any_bytes_come_back_through_byte_units(algorithm: str) -> None:
    generator = np.random.default_rng(1)
    for pretokenizer in ("gpt2_digits", "gpt4", "whitespace", "none"):
        size = None if algorithm == "bytes" else 300
        tok = Tokenizer.train([CODE, EMOJI], algorithm=algorithm, vocab_size=size, pretokenizer=pretokenizer)
        for length in (0, 1, 7, 8, 15, 16, 63, 64, 65, 200, 5_000):
            data = generator.integers(0, 256, length, dtype=np.uint8).tobytes()
            assert tok.decode_bytes(tok.encode_bytes(data)) == data
        assert tok.encode_bytes(CODE.encode()).tolist() == tok.encode(CODE).tolist()


@pytest.mark.parametrize("unit", ["byte", "character"])
def test_every_character_of_unicode_comes_back(unit: str) -> None:
    tok = Tokenizer.train([CODE, EMOJI], vocab_size=500, unit=unit)
    encoding = [tok.with_encoder(encoder) for encoder in ENCODERS]
    for begin in range(0, 0x110000, 0x8000):
        text = "".join(chr(code) for code in range(begin, begin + 0x8000) if not 0xD800 <= code < 0xE000)
        for encoder in encoding:
            assert encoder.decode(encoder.encode(text)) == text


WORDS = ["abababab", "aabbaabb", "abcabcabcabc", "bcbcaabc", "ccccccc"]


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9])
def test_dropout_equals_the_reference_number_for_number(probability: float) -> None:
    tok = Tokenizer.train([" ".join(WORDS)], vocab_size=280, pretokenizer="none")
    merges = [(left.decode("latin-1"), right.decode("latin-1")) for left, right in tok.merges]
    for seed in range(5):
        dropping = tok.with_encoder("dropout", dropout=probability, seed=seed)
        for text in [*WORDS, "abc" * 40, " ".join(WORDS)]:
            stream = reference.pretoken_stream(seed, document_hash(text.encode()), 0)
            expected = reference.dropout(text, merges, probability, stream)
            assert [token.decode() for token in dropping.tokenize(text)] == expected


def document_hash(text: bytes) -> int:
    """The hash of a document of eight bytes or more, or of fewer, written out."""
    bits = (1 << 64) - 1
    first, second = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    if len(text) < 8:
        low, high = int.from_bytes(text, "little") ^ first, (len(text) << 56) ^ second
        return (low * high >> 64) ^ (low * high & bits)
    value = len(text) * second & bits
    for begin in [*range(0, len(text) - 7, 8)]:
        value = (value ^ int.from_bytes(text[begin : begin + 8], "little")) * first & bits
        value ^= value >> 32
    value = (value ^ int.from_bytes(text[-8:], "little")) * first & bits
    value ^= value >> 29
    return value * second & bits | 1


def test_dropout_of_zero_is_merge_rank_and_of_more_has_more_tokens(texts: list[str]) -> None:
    tok = Tokenizer.train(texts, vocab_size=900)
    plain = tok.encode_batch(texts)[0]
    assert tok.with_encoder("dropout", dropout=0.0).encode_batch(texts)[0].tolist() == plain.tolist()
    dropped = tok.with_encoder("dropout", dropout=0.1).encode_batch(texts)[0]
    assert len(dropped) > 1.02 * len(plain)
    assert tok.with_encoder("dropout", dropout=0.1, seed=1).encode_batch(texts)[0].tolist() != dropped.tolist()


@pytest.mark.parametrize("encoder", [*ENCODERS, "dropout"])
@pytest.mark.parametrize("unit", ["byte", "character"])
@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_megabytes_without_a_space_are_no_quadratic_work(encoder: EncoderName, unit: str, megabytes: int) -> None:
    """The square of a million would be longer than a test may last."""
    tok = Tokenizer.train(["abcabd" * 100], vocab_size=600, unit=unit, pretokenizer="gpt2").with_encoder(encoder)
    text = "abcabdabc" * (120_000 * megabytes)
    assert tok.decode(tok.encode(text)) == text


COUNTED_WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=14), st.integers(1, 30), min_size=1, max_size=10)


def longest_first_tokens(tokens: Iterable[str], text: str) -> str:
    """The tokens of a text, taken as one pre-token, by a vocabulary of these and their characters."""
    tokens = list(tokens)
    units = sorted(set("".join(tokens)))
    entries = [
        Token(n, n, token.encode(), 0, None, False, "unit" if token in units else "token")
        for n, token in enumerate([*units, *(token for token in tokens if token not in units)])
    ]
    tok = Tokenizer(Vocabulary.of(entries, (), "character"), settings("scaffold_bpe", "longest_first"))
    return "|".join(token.decode() for token in tok.tokenize(text))


def test_longest_first_on_examples_worked_by_hand() -> None:
    for tokens, text, expected in (
        ({"éa", "abc", "é", "a", "b", "c"}, "éabc", "é|abc"),
        ({"abc", "cde", "d", "e"}, "abcde", "abc|d|e"),
        ({"ab", "bcd", "a", "d"}, "abcd", "a|bcd"),
    ):
        assert longest_first_tokens(sorted(tokens), text) == expected == "|".join(longest_first(text, tokens))


@given(tokens=st.sets(st.text("abc", min_size=1, max_size=6), max_size=12), text=st.text("abc", max_size=30))
def test_longest_first_equals_algorithm_1(tokens: set[str], text: str) -> None:
    tokens |= set("abc")
    assert longest_first_tokens(sorted(tokens), text) == "|".join(longest_first(text, tokens))


def trained(algorithm: Algorithm, words: dict[str, int], size: int) -> Tokenizer:
    """A tokenizer over characters whose pre-tokens are whole texts; its alphabet is a, b, c."""
    texts = [*"abc", *(word for word, count in words.items() for _ in range(count))]
    return Tokenizer.train(
        texts, algorithm=algorithm, vocab_size=size, unit="character", unknown="refuse", pretokenizer="none"
    )


def merges_of(tok: Tokenizer) -> list[tuple[str, str]]:
    return [(left.decode(), right.decode()) for left, right in tok.merges]


@given(words=COUNTED_WORDS, text=st.text("abc", max_size=30), size=st.integers(3, 24))
def test_merge_rank_equals_applying_one_merge_at_a_time(words: dict[str, int], text: str, size: int) -> None:
    tok = trained("bpe", words, size)
    assert [token.decode() for token in tok.tokenize(text)] == merge_rank(text, merges_of(tok))


@given(words=COUNTED_WORDS, text=st.text("abc", max_size=30), size=st.integers(3, 20))
def test_scaffold_encodings_equal_encoding_over_everything_and_demolishing(
    words: dict[str, int], text: str, size: int
) -> None:
    tok = trained("scaffold_bpe", words, size)
    spelled = {entry.bytes.decode(): entry for entry in tok.vocabulary}
    normal = {token for token, entry in spelled.items() if not entry.scaffold}

    def demolished(tokens: list[str]) -> list[str]:
        parts: list[str] = []
        for token in tokens:
            parents = spelled[token].parents
            if token in normal or parents is None:
                parts.append(token)
            else:
                parts += demolished([tok.vocabulary[parent].bytes.decode() for parent in parents])
        return parts

    def encode(encoder: EncoderName, candidates: Candidates = "normal") -> list[str]:
        return [token.decode() for token in tok.with_encoder(encoder, candidates=candidates).tokenize(text)]

    assert encode("merge_rank") == demolished(merge_rank(text, merges_of(tok)))
    assert encode("longest_first") == longest_first(text, normal)
    assert encode("longest_first", "expanded") == demolished(longest_first(text, set(spelled)))
    assert encode("left_to_right") == left_to_right(text, normal)
    assert encode("fewest") == fewest(text, normal)
