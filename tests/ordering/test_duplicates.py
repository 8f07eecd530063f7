"""MinHash against exact Jaccard similarities, and banding against the index of datasketch."""

import hashlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.config.groups.ordering import MinHashDuplicates
from paribus.corpus.artifact import CorpusArtifact, corpus_parts
from paribus.corpus.overlap import words
from paribus.ordering.arrays import NeighbourLists, write_neighbours
from paribus.ordering.duplicates import (
    Bands,
    Groups,
    Pairs,
    buckets,
    embedding_pairs,
    equal_pairs,
    group,
    linked,
    minhash_pairs,
    shingles,
    sign,
    sign_part,
)
from paribus.ordering.in_context import whole_lists
from paribus.stage import SilentListener
from support.corpora import write_corpus

VOCABULARY = [f"word{number}" for number in range(500)]


def variants(groups: int, generator: np.random.Generator) -> list[str]:
    """Texts of 60 words, each with copies in which 0, 1, 2, 4, ... words are others."""
    texts = []
    for _ in range(groups):
        base = generator.choice(VOCABULARY, 60)
        for changed in (0, 0, 1, 2, 4, 8, 16):
            copy = base.copy()
            copy[generator.choice(60, changed, replace=False)] = generator.choice(VOCABULARY, changed)
            texts.append(" ".join(copy))
    return [texts[number] for number in generator.permutation(len(texts))]


def jaccard(a: set[bytes], b: set[bytes]) -> float:
    return len(a & b) / len(a | b)


def all_pairs(count: int) -> Iterator[tuple[int, int]]:
    return itertools.combinations(range(count), 2)


def components(count: int, pairs: list[tuple[int, int]]) -> list[int]:
    smallest = list(range(count))
    for _ in range(count):
        for i, j in pairs:
            smallest[i] = smallest[j] = min(smallest[i], smallest[j])
    return smallest


def found_groups(tmp_path: Path, texts: list[str], config: MinHashDuplicates) -> list[int]:
    corpus = write_corpus(tmp_path / "corpus", texts, group_bytes=300, shard_bytes=9000)
    parts = [sign_part(config, part) for part in corpus_parts(CorpusArtifact(corpus), tmp_path / "parts")]
    assert len(parts) > 2
    return group(len(texts), minhash_pairs(parts, config, SilentListener())).first.tolist()


def test_a_shingle_is_a_run_of_words() -> None:
    assert shingles("The cat  sat,\non the mat", 5) == {b"the cat sat on the", b"cat sat on the mat"}
    assert shingles("a b a b a b", 2) == {b"a b", b"b a"}


def test_a_text_shorter_than_a_shingle_is_one_shingle() -> None:
    assert shingles("The cat!", 5) == {b"the cat"}
    assert shingles("one two three four five", 5) == {b"one two three four five"}


def test_a_character_of_a_script_without_spaces_is_a_word() -> None:
    assert words("我爱python3编程") == ["我", "爱", "python3", "编", "程"]
    assert words("カタカナ漢字です") == list("カタカナ漢字です")
    assert words("ที่นี่") == ["ที่", "นี่"]
    assert words("naïve café, 안녕하세요") == ["naïve", "café", "안녕하세요"]


def test_a_text_without_a_word_is_only_like_itself() -> None:
    assert shingles("", 3) != shingles("!?", 3) != shingles("?!", 3)
    assert len(shingles("", 3)) == 1 and shingles("!?", 3) == shingles("!?", 3)


def test_signatures_are_those_of_datasketch_one_text_at_a_time() -> None:
    texts = variants(3, np.random.default_rng(0))
    signatures = sign([*texts, ""], MinHashDuplicates(permutations=16, shingle=3))
    assert signatures.shape == (22, 16) and signatures.dtype == np.uint64
    for text, signature in zip([*texts, ""], signatures, strict=True):
        single = MinHash(
            16,
            scheme="affine64",
            hashfunc=lambda shingle: int.from_bytes(hashlib.blake2b(shingle, digest_size=8).digest(), "little"),
        )
        for shingle in shingles(text, 3):
            single.update(shingle)
        assert np.array_equal(signature, single.hashvalues)


def test_agreement_of_signatures_estimates_jaccard_similarity() -> None:
    texts = variants(4, np.random.default_rng(1))
    config = MinHashDuplicates(permutations=512, shingle=2)
    signatures = sign(texts, config)
    sets = [shingles(text, 2) for text in texts]
    errors = [(signatures[i] == signatures[j]).mean() - jaccard(sets[i], sets[j]) for i, j in all_pairs(len(texts))]
    assert max(map(abs, errors)) < 0.1 and abs(np.mean(errors)) < 0.005


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("permutations", [1, 2, 64, 128, 250])
def test_bands_find_pairs_at_the_threshold(threshold: float, permutations: int) -> None:
    bands = Bands.of(MinHashDuplicates(threshold=threshold, permutations=permutations))
    assert 0 < bands.count * bands.rows <= permutations
    recall = 1 - (1 - threshold**bands.rows) ** bands.count
    assert recall >= 0.99 or bands.rows == 1
    longer = bands.rows + 1
    assert longer > permutations or 1 - (1 - threshold**longer) ** (permutations // longer) < 0.99


def test_candidates_are_those_of_the_index_of_datasketch() -> None:
    config = MinHashDuplicates(threshold=0.6, permutations=64, shingle=2)
    signatures, bands = sign(variants(8, np.random.default_rng(2)), config), Bands.of(config)
    index = MinHashLSH(num_perm=64, params=(bands.count, bands.rows))
    hashes = [MinHash(hashvalues=row, scheme="affine64") for row in signatures]
    for number, single in enumerate(hashes):
        index.insert(number, single)
    expected = {(i, j) for i, single in enumerate(hashes) for j in index.query(single) if i < j}
    alone, found = np.arange(len(hashes)), set()
    for band in bands.slices:
        _, keys = np.unique(signatures[:, band], axis=0, return_inverse=True)
        for bucket in buckets(alone, keys.ravel().astype(np.uint64), alone):
            found |= set(itertools.combinations(bucket.tolist(), 2))
    assert found == expected and len(found) > 20


def test_documents_of_a_bucket_are_linked_as_by_comparing_all_of_them() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        rows = generator.integers(0, 3, (12, 8)).astype(np.uint64)
        documents = np.sort(generator.choice(100, 12, replace=False))
        pairs = [(i, j) for i, j in all_pairs(12) if (rows[i] == rows[j]).mean() >= 0.625]
        found = linked(documents, rows, 0.625)
        position = {document: number for number, document in enumerate(documents.tolist())}
        tree = [(position[i], position[j]) for i, j in zip(found.first.tolist(), found.second.tolist(), strict=True)]
        assert components(12, tree) == components(12, pairs)
        assert len(tree) == 12 - len(set(components(12, pairs)))
        for (i, j), similarity in zip(tree, found.similarities, strict=True):
            assert (rows[i] == rows[j]).mean() == pytest.approx(similarity)


def test_groups_are_connected_by_every_pair_that_reaches_the_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = variants(30, np.random.default_rng(4))
    config = MinHashDuplicates(threshold=0.7, permutations=128, shingle=2)
    signatures = sign(texts, config)
    pairs = [(i, j) for i, j in all_pairs(len(texts)) if (signatures[i] == signatures[j]).mean() >= 0.7]
    monkeypatch.setattr("paribus.ordering.duplicates.SIGNATURES_AT_ONCE", 5)
    assert found_groups(tmp_path, texts, config) == components(len(texts), pairs)
    assert len(set(components(len(texts), pairs))) < len(texts) / 2


def test_texts_that_differ_by_case_and_punctuation_are_near_duplicates_and_short_ones_are_not(tmp_path: Path) -> None:
    long = " ".join(VOCABULARY[:40])
    texts = [long, "", "!?", long.upper() + "!", "", "?!", "red", "red sky", "Red.", "!?", *VOCABULARY[100:200]]
    groups = found_groups(tmp_path, texts, MinHashDuplicates())
    assert groups[:10] == [0, 1, 2, 0, 1, 5, 6, 7, 6, 2]
    assert groups[10:] == list(range(10, 110))


# Of a group of near duplicates, the document that comes first in the corpus stays.


def groups_of(neighbours: np.ndarray, similarities: np.ndarray, threshold: float) -> Groups:
    with tempfile.TemporaryDirectory() as directory:
        write_neighbours(Path(directory), neighbours, similarities.astype(np.float32))
        return group(len(neighbours), embedding_pairs(NeighbourLists(Path(directory)), threshold))


def test_a_chain_of_near_duplicates_is_one_group() -> None:
    # 3-1 and 1-4 are pairs, 0 and 2 are on their own, and 3 and 4 are not a pair themselves.
    neighbours = np.array([[2, 1], [3, 4], [0, -1], [1, 0], [1, 0]])
    similarities = np.array([[0.9, 0.1], [0.99, 0.96], [0.9, 0], [0.99, 0.1], [0.96, 0.1]])
    groups = groups_of(neighbours, similarities, 0.95)
    assert groups.kept.tolist() == [True, True, True, False, False]
    assert groups.first.tolist() == [0, 1, 2, 1, 1] and groups.sizes.tolist() == [3]
    assert np.allclose(groups.similarities, [0, 0.99, 0, 0.99, 0.96])


def test_a_pair_at_the_threshold_is_not_above_it() -> None:
    assert groups_of(np.array([[1], [0]]), np.array([[0.5], [0.5]]), 0.5).kept.all()


def test_padding_never_makes_a_pair() -> None:
    assert groups_of(np.full((3, 2), -1), np.ones((3, 2)), 0.5).kept.all()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 15), st.data())
def test_the_smallest_document_of_every_group_stays(count: int, data: st.DataObject) -> None:
    cells = count * 2
    ids = data.draw(st.lists(st.integers(-1, count - 1), min_size=cells, max_size=cells))
    cosines = data.draw(st.lists(st.sampled_from([0.1, 0.99]), min_size=cells, max_size=cells))
    neighbours, similarities = np.array(ids).reshape(count, 2), np.array(cosines).reshape(count, 2)
    smallest = list(range(count))
    for _ in range(count):
        for i in range(count):
            for j, cosine in zip(neighbours[i].tolist(), similarities[i].tolist(), strict=True):
                if j >= 0 and cosine > 0.5:
                    smallest[i] = smallest[j] = min(smallest[i], smallest[j])
    groups = groups_of(neighbours, similarities, 0.5)
    assert groups.first.tolist() == smallest
    assert groups.kept.tolist() == [smallest[i] == i for i in range(count)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20))
def test_equal_rows_are_paired_with_the_first_of_them(rows: list[tuple[int, int]]) -> None:
    pairs = equal_pairs(np.array(rows, dtype=np.uint64))
    expected = [(rows.index(row), number) for number, row in enumerate(rows) if rows.index(row) < number]
    assert sorted(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == sorted(expected)
    assert pairs.similarities.tolist() == [1] * len(expected)


def test_pairs_of_no_part_are_none() -> None:
    assert len(Pairs.joined([]).first) == 0
    assert group(3, Pairs.none()).first.tolist() == [0, 1, 2]


def test_removed_documents_leave_room_for_the_next_neighbours() -> None:
    neighbours = np.array([[1, 2, 3], [0, 3, 2], [3, 1, 0], [2, 1, -1]])
    similarities = np.array([[0.99, 0.6, 0.5], [0.99, 0.5, 0.4], [0.7, 0.4, 0.3], [0.7, 0.5, 0]], dtype=np.float32)
    whole = whole_lists(neighbours, similarities, kept=np.array([True, False, True, True]), take=2)
    ids, cosines = whole.ids, whole.weights
    assert ids.tolist() == [[1, 2], [2, 0], [1, -1]]
    assert np.array_equal(cosines[ids >= 0], np.array([0.6, 0.5, 0.7, 0.3, 0.7], dtype=np.float32))
