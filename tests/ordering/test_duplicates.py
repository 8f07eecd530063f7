"""MinHash against exact Jaccard similarities, and banding against the index of datasketch."""

import hashlib
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.ordering import EmbeddingDuplicates, ExactDuplicates, MinHashDuplicates
from paribus.corpus.artifact import CorpusArtifact, corpus_parts
from paribus.errors import DataError
from paribus.ordering.arrays import NeighbourLists, write_neighbours
from paribus.ordering.duplicates import (
    Duplicates,
    build,
    embedding_pairs,
    group,
    linked,
    minhash_pairs,
    shingles,
    sign,
    sign_part,
)
from paribus.stage import SilentListener
from support.corpora import SMALL_PARTS, write_corpus
from support.embeddings import dying_after, embedding_context, read_parts
from support.stages import files

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


def components(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The smallest document that each is connected to."""
    pairs, smallest = list(pairs), list(range(count))
    for _ in range(count):
        for i, j in pairs:
            smallest[i] = smallest[j] = min(smallest[i], smallest[j])
    return smallest


def alike(rows: np.ndarray, threshold: float) -> list[tuple[int, int]]:
    """All pairs of rows that agree in so many places."""
    pairs = itertools.combinations(range(len(rows)), 2)
    return [(i, j) for i, j in pairs if (rows[i] == rows[j]).mean() >= threshold]


def minhash_groups(tmp_path: Path, texts: list[str], config: MinHashDuplicates) -> list[int]:
    corpus = write_corpus(tmp_path / "corpus", texts, group_bytes=300, shard_bytes=9000)
    parts = [sign_part(config, part) for part in corpus_parts(CorpusArtifact(corpus), tmp_path / "parts")]
    assert len(parts) > 2
    return group(len(texts), minhash_pairs(parts, config, SilentListener())).first.tolist()


def test_a_shingle_is_a_run_of_words_and_texts_without_words_are_like_themselves_alone() -> None:
    assert shingles("The cat  sat,\non the mat", 5) == {b"the cat sat on the", b"cat sat on the mat"}
    assert shingles("a b a b a b", 2) == {b"a b", b"b a"}
    assert shingles("", 3) != shingles("!?", 3) != shingles("?!", 3)
    assert len(shingles("", 3)) == 1 and shingles("!?", 3) == shingles("!?", 3)


def test_signatures_are_those_of_datasketch_one_text_at_a_time() -> None:
    texts = [*variants(3, np.random.default_rng(0)), ""]
    signatures = sign(texts, MinHashDuplicates(permutations=16, shingle=3))
    assert signatures.shape == (22, 16) and signatures.dtype == np.uint64

    def hash_of(shingle: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(shingle, digest_size=8).digest(), "little")

    for text, signature in zip(texts, signatures, strict=True):
        single = MinHash(16, scheme="affine64", hashfunc=hash_of)
        for shingle in shingles(text, 3):
            single.update(shingle)
        assert np.array_equal(signature, single.hashvalues)


def test_documents_of_a_bucket_are_linked_as_by_comparing_all_of_them() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        rows = generator.integers(0, 3, (12, 8)).astype(np.uint64)
        documents = np.sort(generator.choice(100, 12, replace=False))
        links = linked(documents, rows, 0.625)
        position = {document: number for number, document in enumerate(documents.tolist())}
        tree = [(position[i], position[j]) for i, j in zip(links.first.tolist(), links.second.tolist(), strict=True)]
        expected = components(12, alike(rows, 0.625))
        assert components(12, tree) == expected
        assert len(tree) == 12 - len(set(expected))
        for (i, j), similarity in zip(tree, links.similarities, strict=True):
            assert (rows[i] == rows[j]).mean() == pytest.approx(similarity)


def test_groups_are_connected_by_every_pair_that_reaches_the_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = variants(30, np.random.default_rng(4))
    config = MinHashDuplicates(threshold=0.7, permutations=128, shingle=2)
    expected = components(len(texts), alike(sign(texts, config), 0.7))
    monkeypatch.setattr("paribus.ordering.duplicates.SIGNATURES_AT_ONCE", 5)
    assert minhash_groups(tmp_path, texts, config) == expected
    assert len(set(expected)) < len(texts) / 2


def test_case_and_punctuation_make_no_difference(tmp_path: Path) -> None:
    long = " ".join(VOCABULARY[:40])
    texts = [long, "", "!?", long.upper() + "!", "", "?!", "red", "red sky", "Red.", "!?", *VOCABULARY[100:200]]
    groups = minhash_groups(tmp_path, texts, MinHashDuplicates())
    assert groups[:10] == [0, 1, 2, 0, 1, 5, 6, 7, 6, 2]
    assert groups[10:] == list(range(10, 110))


@given(st.integers(1, 15), st.data())
def test_the_smallest_document_of_every_group_stays(count: int, data: st.DataObject) -> None:
    cells = count * 2
    ids = data.draw(st.lists(st.integers(-1, count - 1), min_size=cells, max_size=cells))
    cosines = data.draw(st.lists(st.sampled_from([0.1, 0.99]), min_size=cells, max_size=cells))
    links = [(cell // 2, ids[cell]) for cell in range(cells) if ids[cell] >= 0 and cosines[cell] > 0.5]
    with tempfile.TemporaryDirectory() as name:
        similarities = np.array(cosines, dtype=np.float32).reshape(count, 2)
        write_neighbours(Path(name), np.array(ids).reshape(count, 2), similarities)
        groups = group(count, embedding_pairs(NeighbourLists(Path(name)), 0.5))
    smallest = components(count, links)
    assert groups.first.tolist() == smallest
    assert groups.kept.tolist() == [smallest[i] == i for i in range(count)]


BASE = " ".join(f"word{number}" for number in range(30))
TEXTS = [BASE, "sky", "", BASE.upper(), "sky", "sea", BASE + " more", "", "!", "sky", BASE, "?"]
REMOVED = {
    "exact": {4: 1, 7: 2, 9: 1, 10: 0},
    "minhash": {3: 0, 4: 1, 6: 0, 7: 2, 9: 1, 10: 0},
    "embedding": {3: 0, 6: 0, 10: 0},
}
KINDS: dict[str, Any] = {
    "exact": ExactDuplicates(),
    "minhash": MinHashDuplicates(threshold=0.7, permutations=64),
    "embedding": EmbeddingDuplicates(),
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", TEXTS, prefix="id", group_bytes=100, shard_bytes=500)


@pytest.fixture
def neighbours(tmp_path: Path) -> Path:
    """6 is linked to 0 through 3 and 10."""
    path, ids, cosines = tmp_path / "neighbours", np.full((12, 2), -1), np.zeros((12, 2))
    path.mkdir()
    for document, neighbour, cosine in [(3, 0, 0.99), (6, 3, 0.97), (10, 6, 0.96), (4, 1, 0.95), (5, 1, 0.5)]:
        ids[document, 0], cosines[document, 0] = neighbour, cosine
    write_neighbours(path, ids, cosines)
    return path


def test_the_first_of_each_group_stays_and_the_others_name_it_and_their_similarity(
    tmp_path: Path, corpus: Path, neighbours: Path
) -> None:
    similarities = {}
    for kind, expected in REMOVED.items():
        context = embedding_context(tmp_path / kind, {"duplicates": KINDS[kind]}, corpus=corpus, neighbours=neighbours)
        record, duplicates = build(context), Duplicates(context.output)
        assert duplicates.kept.tolist() == [number not in expected for number in range(12)]
        removed = duplicates.removed().to_pydict()
        assert dict(zip(removed["document"], removed["kept"], strict=True)) == expected
        assert removed["id"] == [f"id{document}" for document in expected]
        assert removed["kept_id"] == [f"id{first}" for first in expected.values()]
        assert removed["bytes"] == [len(TEXTS[document].encode()) for document in expected]
        assert record == {
            "documents": 12,
            "removed": len(expected),
            "removed_bytes": sum(removed["bytes"]),
            "removed_share": sum(removed["bytes"]) / sum(len(text.encode()) for text in TEXTS),
            "groups": len(set(expected.values())),
            "largest_group": 1 + Counter(expected.values()).most_common()[0][1],
        }
        json.dumps(record)
        similarities[kind] = removed["similarity"]
    assert similarities["exact"] == [1, 1, 1, 1]
    assert similarities["embedding"] == pytest.approx([0.99, 0.97, 0.96])
    assert 0.7 <= similarities["minhash"].pop(2) < 1 and similarities["minhash"] == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["exact", "minhash"])
def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path, corpus: Path, kind: str) -> None:
    for workers in (1, 2):
        build(embedding_context(tmp_path / str(workers), {"duplicates": KINDS[kind]}, workers=workers, corpus=corpus))
    assert files(tmp_path / "1" / "output") == files(tmp_path / "2" / "output")


@pytest.mark.parametrize(("kind", "saves"), [("exact", 2), ("minhash", 5)])
def test_a_killed_stage_reads_no_finished_part_again(
    tmp_path: Path, corpus: Path, kind: str, saves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(embedding_context(tmp_path / "straight", {"duplicates": KINDS[kind]}, corpus=corpus))
    context = embedding_context(tmp_path / "killed", {"duplicates": KINDS[kind]}, corpus=corpus)
    monkeypatch.setattr("paribus.ordering.duplicates.save_array", dying_after(saves))
    with pytest.raises(KeyboardInterrupt):
        build(context)
    monkeypatch.undo()
    read = read_parts(monkeypatch)
    build(context)
    parts = len(list((tmp_path / "straight" / "work" / "parts").glob("?????-?????-????????-????????.npy")))
    assert len(read) == parts - 2 > 2
    assert files(context.output) == files(tmp_path / "straight" / "output")


@pytest.mark.parametrize("kind", KINDS)
def test_of_documents_that_are_all_the_same_the_first_stays(tmp_path: Path, kind: str) -> None:
    (tmp_path / "neighbours").mkdir()
    write_neighbours(tmp_path / "neighbours", (np.arange(20)[:, None] + [1, 2]) % 20, np.ones((20, 2)))
    for number, text in enumerate((BASE, "sky", "", "!?")):
        corpus = write_corpus(tmp_path / f"corpus{number}", [text] * 20, **SMALL_PARTS)
        inputs = {"corpus": corpus, "neighbours": tmp_path / "neighbours"}
        context = embedding_context(tmp_path / f"run{number}", {"duplicates": KINDS[kind]}, **inputs)
        record = build(context)
        assert np.flatnonzero(Duplicates(context.output).kept).tolist() == [0]
        assert (record["removed"], record["groups"], record["largest_group"]) == (19, 1, 20)
        assert record["removed_bytes"] == 19 * len(text)


def test_an_empty_training_split_and_other_neighbours_are_refused(tmp_path: Path, neighbours: Path) -> None:
    empty = write_corpus(tmp_path / "empty", [])
    with pytest.raises(DataError, match="training split has no documents"):
        build(embedding_context(tmp_path / "a", {"duplicates": ExactDuplicates()}, corpus=empty))
    other = write_corpus(tmp_path / "other", ["sky"] * 5)
    inputs = {"corpus": other, "neighbours": neighbours}
    with pytest.raises(DataError, match="neighbours of 12 documents, but the training split has 5"):
        build(embedding_context(tmp_path / "b", {"duplicates": EmbeddingDuplicates()}, **inputs))
