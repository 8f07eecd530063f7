"""Statistics on numbers that can be checked by hand, and from ids alone against from texts."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from paribus.tokenization import Tokenizer, statistics
from paribus.tokenization.encoded_corpus import EncodedCorpus, EncodedCorpusWriter
from paribus.tokenization.statistics import (
    containing,
    corpus_statistics,
    count_ids,
    count_tokens,
    only_in,
    overlap_shares,
    own_shares,
    renyi_entropy,
    spellings,
    tokens_of,
)
from paribus.tokenization.vocabulary import Token
from support.real_data import RealData

TEXTS = [
    "the theory of the thing, then the other thing",
    "",
    "  two  spaces\tand\r\nlines\n",
    "中文 没有空格的文本，和　全角空格",
    "no-break\u00a0space is inside a word 🙂 emoji",
    " ",
    "ends here ",
    "begins there",
]


def test_bytes_have_known_entropy_and_redundancy() -> None:
    tok = Tokenizer.train([], algorithm="bytes")
    found = corpus_statistics(tok, ["abab", "cdcd"])
    assert (found.texts, found.tokens, found.bytes, found.bytes_per_token) == (2, 8, 8, 1.0)
    assert (found.words, found.tokens_per_word) == (2, 4.0)
    assert found.entropy == pytest.approx(2.0)
    assert found.redundancy == pytest.approx(1 - 2 / 8)
    assert found.renyi_efficiency == pytest.approx(2 / 8)
    assert found.token_lengths == {"1-3": 8}
    assert found.mean_token_length == 1
    assert found.frequency_by_rank == ((1, 2), (2, 2), (3, 2), (4, 2))
    assert (found.used_tokens, found.unused_tokens, found.scaffold_share) == (4, 252, 0.0)


def test_lengths_are_in_characters_and_bytes_are_the_texts() -> None:
    tok = Tokenizer.train(["éééé ab"] * 3, vocab_size=300, pretokenizer="whitespace")
    found = corpus_statistics(tok, ["éééé é"])
    assert found.token_lengths == {"1-3": 2, "4-6": 1}
    assert found.bytes == 11
    assert found.bytes_per_token == pytest.approx(11 / 3)
    assert found.mean_token_length == pytest.approx(6 / 3)


def test_renyi_entropy_follows_its_formula_and_becomes_shannon_s() -> None:
    counts = np.array([5, 3, 0, 2])
    shares = [0.5, 0.3, 0.2]
    assert renyi_entropy(counts, 2.5) == pytest.approx(np.log2(sum(share**2.5 for share in shares)) / (1 - 2.5))
    assert renyi_entropy(counts, 1.000001) == pytest.approx(renyi_entropy(counts, 1.0), abs=1e-5)


def test_special_tokens_are_out() -> None:
    tok = Tokenizer.train([], algorithm="bytes", special_tokens=["<|endoftext|>"])
    counted = count_tokens(tok, ["abc"])
    counted.ids[tok.eos_id] = 1000
    found = statistics.count_statistics(tok, counted)
    assert (found.tokens, found.used_tokens, found.unused_tokens, found.token_lengths) == (3, 3, 253, {"1-3": 3})


@pytest.mark.parametrize("chunk", [1, 3, 4, 1 << 22])
@pytest.mark.parametrize("limit", [0, 1, 6, 8, 9, 100])
def test_the_first_ids_of_an_encoded_corpus_are_counted(
    chunk: int, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "_CHUNK", chunk)
    ids = np.array([3, 1, 3, 0, 259, 3, 1, 1, 2], dtype=np.int32)
    with EncodedCorpusWriter(tmp_path, Tokenizer.train(TEXTS, vocab_size=260)) as writer:
        writer.append(ids, np.array([4, 0, 5]), np.array([4, 0, 5]))
    counts = count_ids(EncodedCorpus(tmp_path), 260, limit)
    assert dict(enumerate(counts.tolist())) == dict.fromkeys(range(260), 0) | Counter(ids[:limit].tolist())


def test_shares_of_several_vocabularies_are_those_of_each_pair() -> None:
    toks = [Tokenizer.train([text], vocab_size=size) for text, size in (("aabb", 257), ("aabbaabb", 259), ("c", 256))]
    spelled = [spellings(tok) for tok in toks]
    assert [len(mine) for mine in spelled] == [257, 259, 256]
    shares = overlap_shares(spelled)
    assert shares == [[1.0, 1.0, 256 / 257], [257 / 259, 1.0, 256 / 259], [1.0, 1.0, 1.0]]


def test_shares_are_of_tokens_where_characters_are_bytes_for_what_is_unknown_too() -> None:
    """Of such a vocabulary, ASCII is spelled twice."""
    texts = ["abab abab cdcd cdcd", "abcabc abcabc bcdbcd"]
    first, second = (Tokenizer.train([text] * 3, vocab_size=270, unit="character") for text in texts)
    (mine, theirs), size = map(spellings, (first, second)), first.vocab_size
    assert len(mine) < tokens_of(mine) == size
    gone = only_in(mine, theirs, count_tokens(first, texts).ids)
    assert gone.tokens > 0 and gone.share == gone.tokens / size
    assert overlap_shares([mine, theirs])[0] == [1.0, 1 - gone.share]


def test_what_replaces_scaffold_tokens_is_more_frequent(real_data: RealData) -> None:
    text = english(real_data)
    plain, scaffold = (
        Tokenizer.train([text], algorithm=algorithm, vocab_size=1200) for algorithm in ("bpe", "scaffold_bpe")
    )
    left_out = only_in(spellings(plain), spellings(scaffold), count_tokens(plain, [text]).ids)
    taken_in = only_in(spellings(scaffold), spellings(plain), count_tokens(scaffold, [text]).ids)
    scaffolds = {entry.bytes for entry in scaffold.vocabulary if entry.scaffold}
    first = {entry.bytes for entry in scaffold.vocabulary[:1200]}
    assert left_out.tokens == taken_in.tokens == len(first & scaffolds) > 0
    assert left_out.share == left_out.tokens / 1200
    assert taken_in.mean_frequency > left_out.mean_frequency
    occurrences = Counter(scaffold.tokenize(text))
    replaced = [entry.bytes for entry in scaffold.vocabulary[1200:] if not entry.scaffold]
    assert taken_in.mean_frequency == pytest.approx(sum(occurrences[token] for token in replaced) / len(replaced))
    assert corpus_statistics(scaffold, [text]).scaffold_share == len(scaffolds) / 1200


def english(real_data: RealData) -> str:
    return "\n".join(real_data.english_texts(200))[:300_000]


# Tokens inside longer tokens, beside the slow definition.

WORD_TEXTS = [
    "Arizona and Arizona, a zone of zonal winds",
    "亚利桑那州和亚利桑那河",
    "singing, ringing; a thing of Arizona",
] * 4


@pytest.fixture(scope="module", params=["byte", "character"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    size = {"byte": 320, "character": 356}[request.param]
    return Tokenizer.train(
        WORD_TEXTS, vocab_size=size, pretokenizer="gpt2", special_tokens=["<|endoftext|>"], unit=request.param
    )


def entries(tokenizer: Tokenizer) -> dict[int, Token]:
    """The tokens by id, special ones out."""
    return {entry.id: entry for entry in tokenizer.vocabulary if entry.id is not None and entry.kind != "special"}


def fallbacks(tokenizer: Tokenizer) -> list[int]:
    """Ids of the bytes of a vocabulary of characters."""
    return [identity for identity, entry in entries(tokenizer).items() if entry.kind == "fallback"]


def test_shares_are_those_of_the_definition(tokenizer: Tokenizer) -> None:
    counts, known = count_tokens(tokenizer, WORD_TEXTS).ids, entries(tokenizer)
    found = own_shares(tokenizer, counts)
    whole = {identity: entry for identity, entry in known.items() if identity not in fallbacks(tokenizer)}
    for identity, part in whole.items():
        total = sum(int(counts[other]) for other, longer in whole.items() if part.bytes in longer.bytes)
        assert found[identity] == pytest.approx(int(counts[identity]) / total if total else np.nan, nan_ok=True)
    inside = [entry.bytes for identity, entry in known.items() if found[identity] == 0]
    assert b"zona" in inside or b"izona" in inside


def test_the_tokens_that_contain_another_are_told_the_most_frequent_first(tokenizer: Tokenizer) -> None:
    counts = count_tokens(tokenizer, WORD_TEXTS).ids
    found = containing(tokenizer, counts, b"zona")
    assert b" Arizona" in [one.token for one in found]
    assert [one.occurrences for one in found] == sorted((one.occurrences for one in found), reverse=True)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert containing(tokenizer, counts, "没有".encode()) == []


def test_every_occurrence_belongs_to_what_it_is_spelled(tokenizer: Tokenizer) -> None:
    counts = count_tokens(tokenizer, WORD_TEXTS).ids
    occurs = {entry.bytes: int(counts[identity]) for identity, entry in entries(tokenizer).items() if counts[identity]}
    assert b"," in occurs
    assert {one.token: one.occurrences for one in containing(tokenizer, counts, b"") if one.occurrences} == occurs
