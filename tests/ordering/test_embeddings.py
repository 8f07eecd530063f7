"""Embeddings on disk: read across shards, and refused by name where a file is not what it should be."""

from pathlib import Path

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.ordering.arrays import FileRows, save_array
from paribus.ordering.embeddings import Embeddings, EmbeddingsWriter

LENGTHS = [[3, 2], [4], [1, 1, 2]]


def unit(rows: np.ndarray) -> np.ndarray:
    """float32 rows of length 1, one at a time; zeros stay zeros."""
    exact = [row.astype(float) / (np.sqrt(sum(row.astype(float) ** 2)) or 1) for row in rows]
    return np.array(exact, dtype=np.float32).reshape(rows.shape)


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(13, 4)).astype(np.float16)


@pytest.fixture
def artifact(tmp_path: Path, vectors: np.ndarray) -> Path:
    path, start = tmp_path / "embeddings", 0
    path.mkdir()
    vectors[7] = 0
    writer = EmbeddingsWriter(path)
    for shard, lengths in enumerate(LENGTHS):
        files = [tmp_path / f"{shard}-{part}.npy" for part in range(len(lengths))]
        for file, length in zip(files, lengths, strict=True):
            save_array(file, vectors[start : start + length])
            start += length
        writer.add(files)
    writer.close()
    assert (writer.lengths, writer.dimensions, writer.zero_rows) == ([5, 4, 4], 4, 1)
    return path


def test_rows_are_read_in_corpus_order_across_shards(artifact: Path, vectors: np.ndarray) -> None:
    embeddings = Embeddings(artifact)
    assert (len(embeddings), embeddings.dimensions) == (13, 4)
    stored = [np.load(shard) for shard in embeddings.shards]
    assert [(len(array), array.dtype) for array in stored] == [(5, np.float16), (4, np.float16), (4, np.float16)]
    for start in range(14):
        for stop in range(start, 14):
            found = embeddings.rows(start, stop)
            assert found.dtype == np.float32 and np.allclose(found, unit(vectors[start:stop]), atol=1e-6)


def test_any_rows_are_read_in_the_order_asked_for(artifact: Path, vectors: np.ndarray) -> None:
    embeddings, generator = Embeddings(artifact), np.random.default_rng(1)
    for size in (0, 1, 5, 40):
        ids = generator.integers(0, 13, size)
        assert np.allclose(embeddings.take(ids), unit(vectors[ids]), atol=1e-6)


def test_a_number_that_is_not_finite_is_refused_by_document(artifact: Path) -> None:
    shard = np.load(artifact / "00001.npy")
    shard[2, 3] = np.nan
    np.save(artifact / "00001.npy", shard)
    embeddings = Embeddings(artifact)
    for call in (lambda: embeddings.rows(3, 9), lambda: embeddings.take([12, 7])):
        with pytest.raises(DataError, match="the vector of document 7 has a number that is not finite"):
            call()
    assert len(embeddings.rows(8, 13)) == 5


def test_a_shard_cut_short_is_refused_by_name(artifact: Path) -> None:
    shard = artifact / "00001.npy"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"00001\.npy: no readable array"):
        Embeddings(artifact)


def test_an_array_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    save_array(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(ValueError, match="Object arrays"):
        save_array(tmp_path / "a.npy", np.array([None]))
    assert np.load(tmp_path / "a.npy").tolist() == [0, 1, 2] and len(list(tmp_path.iterdir())) == 1
    assert len(FileRows([tmp_path / "a.npy"], [3])) == 3
