"""The corpus artefact: what is written is what is read."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.corpus.artifact import SPLITS, CorpusArtifact, CorpusWriter, Document, corpus_parts, split_of
from paribus.errors import DataError
from support.corpora import write_corpus

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=20)


def write(path: Path, texts: list[str], heldout: float = 0.3, shard_bytes: int = 50) -> CorpusArtifact:
    with CorpusWriter(path, heldout=heldout, shard_bytes=shard_bytes) as writer:
        for index, text in enumerate(texts):
            writer.add(str(index), text, "here")
    return CorpusArtifact(path)


@given(TEXTS)
def test_any_unicode_text_survives_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    corpus = write(tmp_path_factory.mktemp("corpus"), texts)
    expected = [Document(str(i), text, "here", len(text.encode())) for i, text in enumerate(texts)]
    for split in SPLITS:
        side = [document for document in expected if split_of(document.text.encode(), None, 0.3) == split]
        assert list(corpus.documents(split)) == side
        assert list(corpus.texts(split)) == [document.text for document in side]
        assert corpus.count(split) == len(side)
        assert corpus.bytes(split) == sum(document.bytes for document in side)


def test_exact_copies_stay_on_one_side_and_the_held_out_share_is_as_asked(tmp_path: Path) -> None:
    copies = write(tmp_path / "copies", [f"text {i % 50}" for i in range(500)])
    assert not set(copies.texts("train")) & set(copies.texts("heldout"))
    assert copies.count("train") + copies.count("heldout") == 500
    corpus = write(tmp_path / "corpus", [f"document {i}" for i in range(10_000)], heldout=0.05, shard_bytes=10**6)
    assert 400 < corpus.count("heldout") < 600


def test_shards_are_bounded_in_order_and_equal_bytes_for_equal_documents(tmp_path: Path) -> None:
    texts = [f"{i:04d}" * 25 for i in range(200)]
    one, two = (write(tmp_path / name, texts, heldout=1e-9, shard_bytes=1000) for name in ("one", "two"))
    assert len(one.shards("train")) == 20
    assert list(one.texts("train")) == texts
    for split in SPLITS:
        assert [path.read_bytes() for path in one.shards(split)] == [path.read_bytes() for path in two.shards(split)]


# Parts of a corpus: every document once, in order, and no part larger than asked for.

SIZED_TEXTS = [f"document {number} " + "x" * (number * 37 % 90) for number in range(60)] + [""]


def test_parts_hold_every_document_once_in_corpus_order(tmp_path: Path) -> None:
    path = write_corpus(tmp_path / "corpus", SIZED_TEXTS, prefix="id", group_bytes=500, shard_bytes=1500)
    for size in (None, 1, 150, 400, 10**9):
        parts = corpus_parts(CorpusArtifact(path), tmp_path / "parts", bytes=size)
        assert [text for part in parts for text in part.texts()] == SIZED_TEXTS
        assert [part.start for part in parts] == [sum(part.rows for part in parts[:n]) for n in range(len(parts))]
        ids = [name for part in parts for name in part.columns("id")["id"].to_pylist()]
        assert ids == [f"id{n}" for n in range(61)]
        assert len({part.target for part in parts}) == len(parts)


def test_row_group_is_cut_by_its_bytes_and_other_sizes_have_other_files(tmp_path: Path) -> None:
    path = write_corpus(tmp_path / "corpus", ["word " * 200] * 10, group_bytes=10**6, shard_bytes=10**6)
    size = pq.read_metadata(path / "train" / "00000.parquet").row_group(0).total_byte_size
    ranges: dict[Path, tuple[int, int]] = {}
    for pieces, expected in [(1, [10]), (3, [3, 3, 4]), (10, [1] * 10), (50, [1] * 10)]:
        parts = corpus_parts(CorpusArtifact(path), tmp_path / "parts", bytes=-(-size // pieces))
        assert [part.rows for part in parts] == expected
        for part in parts:
            assert ranges.setdefault(part.target, (part.start, part.rows)) == (part.start, part.rows)


def test_empty_training_split_is_refused(tmp_path: Path) -> None:
    corpus = CorpusArtifact(write_corpus(tmp_path / "corpus", []))
    with pytest.raises(DataError, match=r"`corpus\.heldout`"):
        corpus_parts(corpus, tmp_path / "parts")
