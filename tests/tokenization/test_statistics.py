"""Statistics on numbers that can be checked by hand, and from ids alone against from texts."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from paribus.tokenization import Tokenizer, statistics
from paribus.tokenization.encoded_corpus import EncodedCorpus, EncodedCorpusWriter
from paribus.tokenization.statistics import (
    corpus_statistics,
    count_ids,
    count_tokens,
    only_in,
    overlap_shares,
    own_shares,
    renyi_entropy,
    spellings,
)
from paribus.tokenization.vocabulary import Token


def test_statistics_of_bytes_are_those_computed_by_hand() -> None:
    statistics = corpus_statistics(Tokenizer.train([], algorithm="bytes"), ["abab", "cdcd"])
    assert (statistics.texts, statistics.tokens, statistics.bytes, statistics.bytes_per_token) == (2, 8, 8, 1.0)
    assert (statistics.words, statistics.tokens_per_word) == (2, 4.0)
    assert statistics.entropy == pytest.approx(2.0)
    assert statistics.redundancy == pytest.approx(1 - 2 / 8)
    assert statistics.renyi_efficiency == pytest.approx(2 / 8)
    assert (statistics.token_lengths, statistics.mean_token_length) == ({"1-3": 8}, 1)
    assert statistics.frequency_by_rank == ((1, 2), (2, 2), (3, 2), (4, 2))
    assert (statistics.used_tokens, statistics.unused_tokens, statistics.scaffold_share) == (4, 252, 0.0)


def test_renyi_entropy_follows_its_formula_and_tends_to_shannons() -> None:
    counts = np.array([5, 3, 0, 2])
    shares = [0.5, 0.3, 0.2]
    assert renyi_entropy(counts, 2.5) == pytest.approx(np.log2(sum(share**2.5 for share in shares)) / (1 - 2.5))
    assert renyi_entropy(counts, 1.000001) == pytest.approx(renyi_entropy(counts, 1.0), abs=1e-5)


def test_statistics_leave_out_special_tokens() -> None:
    tok = Tokenizer.train([], algorithm="bytes", special_tokens=["<|endoftext|>"])
    counts = count_tokens(tok, ["abc"])
    counts.ids[tok.eos_id] = 1000
    of_text = statistics.count_statistics(tok, counts)
    assert (of_text.tokens, of_text.used_tokens, of_text.unused_tokens, of_text.token_lengths) == (
        3,
        3,
        253,
        {"1-3": 3},
    )


@pytest.mark.parametrize("chunk", [1, 3, 4, 1 << 22])
def test_the_first_ids_of_an_encoded_corpus_are_counted(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "_CHUNK", chunk)
    ids = np.array([3, 1, 3, 0, 259, 3, 1, 1, 2], dtype=np.int32)
    with EncodedCorpusWriter(tmp_path, Tokenizer.train(["the theory"], vocab_size=260)) as writer:
        writer.append(ids, np.array([4, 0, 5]), np.array([4, 0, 5]))
    for limit in (0, 1, 6, 8, 9, 100):
        counts = count_ids(EncodedCorpus(tmp_path), 260, limit)
        assert dict(enumerate(counts.tolist())) == dict.fromkeys(range(260), 0) | Counter(ids[:limit].tolist())


def test_shares_of_several_vocabularies_are_those_of_each_pair() -> None:
    toks = [Tokenizer.train([text], vocab_size=size) for text, size in (("aabb", 257), ("aabbaabb", 259), ("c", 256))]
    spelled = [spellings(tok) for tok in toks]
    assert overlap_shares(spelled) == [[1.0, 1.0, 256 / 257], [257 / 259, 1.0, 256 / 259], [1.0, 1.0, 1.0]]
    difference = only_in(spelled[0], spelled[2], count_tokens(toks[0], ["aabb", "aa"]).ids)
    assert (difference.tokens, difference.share, difference.mean_frequency) == (1, 1 / 257, 2.0)


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


def test_the_share_of_a_token_is_of_all_occurrences_of_tokens_that_contain_it(tokenizer: Tokenizer) -> None:
    counts, tokens = count_tokens(tokenizer, WORD_TEXTS).ids, entries(tokenizer)
    shares = own_shares(tokenizer, counts)
    whole = {identity: entry.bytes for identity, entry in tokens.items() if entry.kind != "fallback"}
    for identity, part in whole.items():
        total = sum(int(counts[other]) for other, longer in whole.items() if part in longer)
        assert shares[identity] == pytest.approx(int(counts[identity]) / total if total else np.nan, nan_ok=True)
    inside = [entry.bytes for identity, entry in tokens.items() if shares[identity] == 0]
    assert b"zona" in inside or b"izona" in inside
