"""The stage `duplicates` on files: one document of each group stays, and the others say for which."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.ordering import EmbeddingDuplicates, ExactDuplicates, MinHashDuplicates
from paribus.errors import DataError
from paribus.ordering.arrays import write_neighbours
from paribus.ordering.duplicates import Duplicates, build
from support.corpora import SMALL_PARTS, write_corpus
from support.embeddings import dying_after, read_parts, stage_context
from support.stages import files

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


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_of_each_group_stays_and_the_others_name_it(
    tmp_path: Path, corpus: Path, neighbours: Path, kind: str
) -> None:
    context = stage_context(tmp_path / "run", {"duplicates": KINDS[kind]}, corpus=corpus, neighbours=neighbours)
    record, expected = build(context), REMOVED[kind]
    duplicates = Duplicates(context.output)
    assert duplicates.kept.tolist() == [number not in expected for number in range(12)]
    removed = duplicates.removed()
    assert dict(zip(removed["document"].to_pylist(), removed["kept"].to_pylist(), strict=True)) == expected
    assert removed["id"].to_pylist() == [f"id{document}" for document in expected]
    assert removed["kept_id"].to_pylist() == [f"id{kept}" for kept in expected.values()]
    sizes = [len(TEXTS[document].encode()) for document in expected]
    assert removed["bytes"].to_pylist() == sizes
    assert record == {
        "documents": 12,
        "removed": len(expected),
        "removed_bytes": sum(sizes),
        "removed_share": sum(sizes) / sum(len(text.encode()) for text in TEXTS),
        "groups": len(set(expected.values())),
        "largest_group": 1 + Counter(expected.values()).most_common()[0][1],
    }
    json.dumps(record)


def test_the_similarity_is_that_to_the_document_that_linked_it(tmp_path: Path, corpus: Path, neighbours: Path) -> None:
    found = {}
    for kind, config in KINDS.items():
        context = stage_context(tmp_path / kind, {"duplicates": config}, corpus=corpus, neighbours=neighbours)
        build(context)
        found[kind] = Duplicates(context.output).removed()["similarity"].to_pylist()
    assert found["exact"] == [1, 1, 1, 1]
    assert found["embedding"] == pytest.approx([0.99, 0.97, 0.96])
    assert found["minhash"][:2] == [1, 1] and 0.7 <= found["minhash"][2] < 1 and found["minhash"][3:] == [1, 1, 1]


@pytest.mark.parametrize("kind", ["exact", "minhash"])
def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path, corpus: Path, kind: str) -> None:
    for workers in (1, 2):
        build(stage_context(tmp_path / str(workers), {"duplicates": KINDS[kind]}, workers=workers, corpus=corpus))
    assert files(tmp_path / "1" / "output") == files(tmp_path / "2" / "output")


@pytest.mark.parametrize(("kind", "saves"), [("exact", 2), ("minhash", 5)])
def test_what_was_finished_before_a_kill_is_not_computed_again(
    tmp_path: Path, corpus: Path, kind: str, saves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(stage_context(tmp_path / "straight", {"duplicates": KINDS[kind]}, corpus=corpus))
    context = stage_context(tmp_path / "killed", {"duplicates": KINDS[kind]}, corpus=corpus)
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
@pytest.mark.parametrize("text", [BASE, "sky", "", "!?"])
def test_of_documents_that_are_all_the_same_the_first_stays(tmp_path: Path, kind: str, text: str) -> None:
    corpus = write_corpus(tmp_path / "corpus", [text] * 20, **SMALL_PARTS)
    (tmp_path / "neighbours").mkdir()
    write_neighbours(tmp_path / "neighbours", (np.arange(20)[:, None] + [1, 2]) % 20, np.ones((20, 2)))
    context = stage_context(
        tmp_path / "run", {"duplicates": KINDS[kind]}, corpus=corpus, neighbours=tmp_path / "neighbours"
    )
    record = build(context)
    assert np.flatnonzero(Duplicates(context.output).kept).tolist() == [0]
    assert (record["removed"], record["groups"], record["largest_group"]) == (19, 1, 20)
    assert record["removed_bytes"] == 19 * len(text)


def test_an_empty_training_split_and_other_neighbours_are_refused(tmp_path: Path, neighbours: Path) -> None:
    empty = write_corpus(tmp_path / "empty", [])
    with pytest.raises(DataError, match="training split has no documents"):
        build(stage_context(tmp_path / "a", {"duplicates": ExactDuplicates()}, corpus=empty))
    other = write_corpus(tmp_path / "other", ["sky"] * 5)
    inputs = {"corpus": other, "neighbours": neighbours}
    with pytest.raises(DataError, match="neighbours of 12 documents, but the training split has 5"):
        build(stage_context(tmp_path / "b", {"duplicates": EmbeddingDuplicates()}, **inputs))
