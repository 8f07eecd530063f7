"""Parts of a corpus: every document once, in order, and no part larger than asked for."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paribus.corpus.artifact import CorpusArtifact, corpus_parts
from paribus.errors import DataError
from support.corpora import write_corpus

TEXTS = [f"document {number} " + "x" * (number * 37 % 90) for number in range(60)] + [""]


@pytest.mark.parametrize("size", [None, 1, 150, 400, 10**9])
def test_parts_hold_every_document_once_in_corpus_order(tmp_path: Path, size: int | None) -> None:
    corpus = CorpusArtifact(write_corpus(tmp_path / "corpus", TEXTS, prefix="id", group_bytes=500, shard_bytes=1500))
    parts = corpus_parts(corpus, tmp_path / "parts", bytes=size)
    assert [text for part in parts for text in part.texts()] == TEXTS
    assert [part.start for part in parts] == [sum(part.rows for part in parts[:n]) for n in range(len(parts))]
    assert [name for part in parts for name in part.columns("id")["id"].to_pylist()] == [f"id{n}" for n in range(61)]
    assert len({part.target for part in parts}) == len(parts)


def test_parts_of_other_sizes_keep_what_they_computed_in_other_files(tmp_path: Path) -> None:
    path = write_corpus(tmp_path / "corpus", ["word " * 200] * 10, group_bytes=10**6, shard_bytes=10**6)
    ranges: dict[Path, tuple[int, int]] = {}
    for size in (None, 900, 2_000, 4_000):
        for part in corpus_parts(CorpusArtifact(path), tmp_path / "parts", bytes=size):
            assert ranges.setdefault(part.target, (part.start, part.rows)) == (part.start, part.rows)


def test_a_row_group_is_cut_into_as_many_pieces_as_it_has_times_the_bytes(tmp_path: Path) -> None:
    path = write_corpus(tmp_path / "corpus", ["word " * 200] * 10, group_bytes=10**6, shard_bytes=10**6)
    size = pq.read_metadata(path / "train" / "00000.parquet").row_group(0).total_byte_size
    for pieces, expected in [(1, [10]), (3, [3, 3, 4]), (10, [1] * 10), (50, [1] * 10)]:
        parts = corpus_parts(CorpusArtifact(path), tmp_path / "parts", bytes=-(-size // pieces))
        assert [part.rows for part in parts] == expected


def test_an_empty_training_split_is_refused(tmp_path: Path) -> None:
    corpus = CorpusArtifact(write_corpus(tmp_path / "corpus", []))
    with pytest.raises(DataError, match=r"`corpus\.heldout`"):
        corpus_parts(corpus, tmp_path / "parts")
