"""Embeddings on disk: read across shards, and refused by name where a file is not what it should be."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertModel

from paribus.config.groups.ordering import EmbedderConfig, TfidfEmbedder
from paribus.errors import DataError, NumericalError
from paribus.ordering.arrays import save_array
from paribus.ordering.embeddings import Embeddings, EmbeddingsWriter, build
from paribus.ordering.tfidf import TfidfSvd
from support.corpora import SMALL_PARTS, write_corpus
from support.embeddings import WORDS, dying_after, embedding_context, encoder_config, read_parts, write_encoder
from support.stages import files


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
    for shard, lengths in enumerate([[3, 2], [4], [1, 1, 2]]):
        parts = [tmp_path / f"{shard}-{part}.npy" for part in range(len(lengths))]
        for part, length in zip(parts, lengths, strict=True):
            save_array(part, vectors[start : start + length])
            start += length
        writer.add(parts)
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
            rows = embeddings.rows(start, stop)
            assert rows.dtype == np.float32 and np.allclose(rows, unit(vectors[start:stop]), atol=1e-6)


def test_damaged_shards_and_numbers_that_are_not_finite_are_refused_by_name(artifact: Path) -> None:
    path = artifact / "00001.npy"
    shard = np.load(path)
    shard[2, 3] = np.nan
    np.save(path, shard)
    embeddings = Embeddings(artifact)
    for call in (lambda: embeddings.rows(3, 9), lambda: embeddings.take([12, 7])):
        with pytest.raises(DataError, match="the vector of document 7 has a number that is not finite"):
            call()
    assert len(embeddings.rows(8, 13)) == 5
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"00001\.npy: no readable array"):
        Embeddings(artifact)


TEXTS = [f"{' '.join(WORDS[5 + (i * j) % 5] for j in range(1, 2 + i % 7))} word{i}" for i in range(40)]
TEXTS[7] = TEXTS[23] = ""
KINDS = ["tfidf_svd", "transformers"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", TEXTS, **SMALL_PARTS)


@pytest.fixture
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> EmbedderConfig:
    if request.param == "tfidf_svd":
        return TfidfEmbedder(dimensions=6, fit_documents=25)
    return encoder_config(write_encoder(tmp_path / "encoder"), max_tokens=3, max_chunks=2)


@pytest.mark.parametrize("embedder", KINDS, indirect=True)
def test_every_document_has_a_unit_vector_or_zeros_in_corpus_order(
    tmp_path: Path, corpus: Path, embedder: EmbedderConfig
) -> None:
    context = embedding_context(tmp_path / "run", {"embedder": embedder}, corpus=corpus)
    record, embeddings = build(context), Embeddings(context.output)
    lengths = np.linalg.norm(embeddings.rows(0, len(embeddings)), axis=1)
    zeros = np.flatnonzero(lengths == 0)
    assert {7, 23} <= set(zeros.tolist())
    assert np.allclose(np.delete(lengths, zeros), 1, atol=2e-3)
    shards = len(list((corpus / "train").glob("*.parquet")))
    assert len(embeddings.shards) == shards > 2
    numbers = {"documents": 40, "dimensions": embeddings.dimensions, "zero_rows": len(zeros), "shards": shards}
    assert {name: record[name] for name in numbers} == numbers
    assert isinstance(record["embedder"], dict) and record["embedder"]["kind"] == embedder.kind
    json.dumps(record)


@pytest.mark.parametrize("embedder", KINDS, indirect=True)
def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path, corpus: Path, embedder: EmbedderConfig) -> None:
    for workers in (1, 2):
        build(embedding_context(tmp_path / str(workers), {"embedder": embedder}, workers=workers, corpus=corpus))
    assert files(tmp_path / "1" / "output") == files(tmp_path / "2" / "output")


@pytest.mark.parametrize("embedder", KINDS, indirect=True)
def test_a_killed_stage_embeds_no_finished_part_again(
    tmp_path: Path, corpus: Path, embedder: EmbedderConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(embedding_context(tmp_path / "straight", {"embedder": embedder}, corpus=corpus))
    context = embedding_context(tmp_path / "killed", {"embedder": embedder}, corpus=corpus)
    parts = len(list((tmp_path / "straight" / "work" / "parts").iterdir()))
    monkeypatch.setattr("paribus.ordering.embeddings.save_array", dying_after(4))
    with pytest.raises(KeyboardInterrupt):
        build(context)
    monkeypatch.undo()
    assert not any(context.output.iterdir())
    (context.work / "parts" / ".00000-00009-00000000.npy.half").write_bytes(b"half")
    read = read_parts(monkeypatch)
    build(context)
    assert len(read) == len(set(read)) == parts - 4 > 4
    assert files(context.output) == files(tmp_path / "straight" / "output")


def test_tfidf_is_fitted_on_a_sample_that_is_spread_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_corpus(tmp_path / "corpus", [f"red term{number}" for number in range(30)], **SMALL_PARTS)
    config = TfidfEmbedder(dimensions=4, fit_documents=7)
    context = embedding_context(tmp_path / "run", {"embedder": config}, corpus=corpus)
    record = build(context)
    fitted = TfidfSvd.load(context.work / "tfidf_svd", config)
    assert sorted(fitted.terms) == sorted(["red", *(f"term{number * 30 // 7}" for number in range(7))])
    assert record["embedder"] == {"kind": "tfidf_svd", "fit_documents": 7, "terms": 8, "directions": 4}
    read = read_parts(monkeypatch)
    build(embedding_context(tmp_path / "all", {"embedder": TfidfEmbedder(dimensions=4)}, corpus=corpus))
    assert len(read) == 2 * len(set(read))
    without_words = write_corpus(tmp_path / "without", ["", "!?"])
    with pytest.raises(DataError, match="No document that TF-IDF is fitted on has a word"):
        build(embedding_context(tmp_path / "refused", {"embedder": TfidfEmbedder()}, corpus=without_words))


def test_an_encoder_that_gives_no_finite_numbers_is_named(tmp_path: Path, corpus: Path) -> None:
    path = write_encoder(tmp_path / "encoder")
    model = BertModel.from_pretrained(path)
    torch.nn.init.constant_(model.encoder.layer[1].output.dense.weight, float("nan"))
    model.save_pretrained(path)
    with pytest.raises(NumericalError, match=rf"The encoder in {path} gives vectors that are not finite"):
        build(embedding_context(tmp_path / "run", {"embedder": encoder_config(path)}, corpus=corpus))
