"""The stage `embeddings`: tokenizer-free, so every tokenizer of a sweep shares it.

It is a map over row groups of the training split, or pieces of them. Finished parts are in `context.work`, so that a
kill costs no more than the parts being computed.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import EmbedderConfig, MiniLMEmbedder, TfidfEmbedder, TransformersEmbedder
from paribus.corpus.artifact import CorpusArtifact, CorpusPart, corpus_parts
from paribus.engine import Engine
from paribus.engine.local import LocalEngine
from paribus.errors import DataError
from paribus.ordering.arrays import FileRows, map_array, open_array, save_array, spread, unit_rows
from paribus.ordering.embedding_files import embedder_directory
from paribus.stage import JSON, StageContext
from paribus.store import files

ENCODER_BYTES = 2**20
"""Text of a part for an encoder: one or two minutes of one core for a small encoder."""
BLOCK = 4096
"""Documents that are embedded at once; bounds the memory a part of many short documents takes."""
Chosen = tuple[CorpusPart, npt.NDArray[np.int64]]
Vectors = npt.NDArray[np.float32]
MANIFEST = "embeddings.json"
_ROWS_AT_ONCE = 8192
"""Vectors that are scaled at once, as that takes double precision and shards are large."""


def build(context: StageContext) -> dict[str, JSON]:
    """Write the vectors of the training split.

    Raises DataError for an empty split or unreadable files of an embedder, ConfigurationError for what an embedder
    cannot do, NumericalError for one whose vectors are not finite.
    """
    slow = isinstance(context.config.embedder, TransformersEmbedder | MiniLMEmbedder)
    corpus = CorpusArtifact(context.inputs["corpus"])
    parts = corpus_parts(corpus, context.work / "parts", bytes=ENCODER_BYTES if slow else None)
    config = context.config.embedder
    directory = _fit_tfidf(config, parts, context) if isinstance(config, TfidfEmbedder) else embedder_directory(config)
    embed = PartEmbedding(config, directory)
    facts = embed.embedder.facts()
    threads = embed.embedder.threads
    engine: Engine = LocalEngine(threads) if threads else context.engine
    total, done, doing = _documents(parts), 0, "embedding documents"
    context.listener.progress(done, total, unit="documents", doing=doing)
    for part in engine.map(embed, parts, releases_gil=threads > 0):
        done += part.rows
        context.listener.progress(done, total, unit="documents", doing=doing)
    writer = EmbeddingsWriter(context.output)
    for _, shard in itertools.groupby(parts, key=lambda part: part.shard):
        writer.add([part.target for part in shard])
    writer.close()
    return {
        "documents": sum(writer.lengths),
        "dimensions": writer.dimensions,
        "zero_rows": writer.zero_rows,
        "shards": len(writer.lengths),
        "embedder": facts,
    }


def _fit_tfidf(config: TfidfEmbedder, parts: list[CorpusPart], context: StageContext) -> Path:
    """Directory of the fitted TF-IDF, which is fitted first unless it exists."""
    from paribus.ordering.tfidf import TfidfSvd

    directory = context.work / "tfidf_svd"
    if not directory.exists():
        fitted = min(config.fit_documents, _documents(parts))
        context.listener.progress(0, fitted, unit="documents", doing="fitting TF-IDF and SVD")
        sample = sample_texts(parts, config.fit_documents, config.max_characters, context.engine)
        TfidfSvd.fit(sample, config).save(directory)
    return directory


def _documents(parts: Sequence[CorpusPart]) -> int:
    return parts[-1].start + parts[-1].rows


class Embedder(Protocol):
    """Documents to unit vectors, which do not depend on the number of threads."""

    @property
    def threads(self) -> int:
        """Threads to embed in where it uses GPUs, which processes should not share; 0 where it does not."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, d) rows of unit length, or of zeros for a document without direction, such as an empty one."""

    def facts(self) -> dict[str, JSON]:
        """Facts for the record of the embeddings."""


class PartEmbedding:
    """Embeds parts of a corpus into their files; a process that unpickles it opens the embedder itself."""

    def __init__(self, config: EmbedderConfig, directory: Path) -> None:
        self.config, self.directory = config, directory
        self._embedder: Embedder | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"config": self.config, "directory": self.directory, "_embedder": None}

    @property
    def embedder(self) -> Embedder:
        """The embedder, opened on first use; raises that embedder's errors where its files are missing."""
        if self._embedder is not None:
            return self._embedder
        if isinstance(self.config, TfidfEmbedder):
            from paribus.ordering.tfidf import TfidfSvd

            self._embedder = TfidfSvd.load(self.directory, self.config)
        else:
            from paribus.ordering.embedding_model import EmbeddingModel

            self._embedder = EmbeddingModel(self.directory, self.config)
        return self._embedder

    def __call__(self, part: CorpusPart) -> CorpusPart:
        if not part.target.exists():
            texts = part.texts()
            blocks = [self.embedder.embed(texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK)]
            save_array(part.target, np.concatenate([block.astype(np.float16) for block in blocks]))
        return part


def sample_texts(parts: Sequence[CorpusPart], size: int, max_characters: int, engine: Engine) -> Iterator[str]:
    """The beginnings of `size` documents, document i n / `size` for i in 0, 1, ...; of all n where there are fewer."""
    for texts in engine.map(partial(_read_beginnings, max_characters), _sample_rows(parts, size)):
        yield from texts


def _sample_rows(parts: Sequence[CorpusPart], size: int) -> Iterable[Chosen]:
    positions = spread(_documents(parts), size)
    for part in parts:
        first, last = np.searchsorted(positions, [part.start, part.start + part.rows])
        if first < last:
            yield part, positions[first:last] - part.start


def _read_beginnings(max_characters: int, chosen: Chosen) -> list[str]:
    part, rows = chosen
    texts = part.texts()
    return [texts[row][:max_characters] for row in rows.tolist()]


class Embeddings:
    """Reads the embeddings in directory `path`, in corpus order.

    There is a float16 array for each Parquet shard of the training split; `embeddings.json` has their numbers of rows
    and the dimensions.

    Vectors have unit length, or are zeros (a document that is like no other); their directions are those of float16.
    Raises DataError, naming the file, where an array is missing, cut short or of another type or length.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        manifest = self.path / MANIFEST
        try:
            content = json.loads(manifest.read_text(encoding="utf-8"))
            lengths, self.dimensions = [int(rows) for rows in content["rows"]], int(content["dimensions"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{manifest}: no readable description of embeddings ({error!r}); make them again"
            ) from error
        self.shards = [self.path / f"{number:05d}.npy" for number in range(len(lengths))]
        for shard, rows in zip(self.shards, lengths, strict=True):
            array, shape = open_array(shard, "embeddings"), (rows, self.dimensions)
            if array.shape != shape or array.dtype != np.float16:
                raise DataError(
                    f"{shard}: float16 {shape} is described by {MANIFEST}, but this is {array.dtype} {array.shape}; "
                    "make the embeddings again"
                )
        self._rows = FileRows(self.shards, lengths)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        """Vectors of the documents from `start` up to `stop`, (stop - start, dimensions)."""
        vectors = np.empty((max(0, stop - start), self.dimensions), dtype=np.float32)
        for first in range(start, max(start + 1, stop), _ROWS_AT_ONCE):
            last = min(first + _ROWS_AT_ONCE, stop)
            vectors[first - start : last - start] = self._unit(self._rows.rows(first, last), range(first, last))
        return vectors

    def take(self, ids: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Vectors of the documents of 1-D `ids`, (len(ids), dimensions)."""
        documents = np.asarray(ids, dtype=np.int64)
        vectors = np.empty((len(documents), self.dimensions), dtype=np.float32)
        for first in range(0, len(documents), _ROWS_AT_ONCE):
            batch = documents[first : first + _ROWS_AT_ONCE]
            vectors[first : first + len(batch)] = self._unit(self._rows.take(batch), batch)
        return vectors

    def _unit(self, vectors: npt.NDArray[np.float16], documents: Sequence[int] | npt.NDArray[Any]) -> Vectors:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            wrong = documents[int(np.flatnonzero(~finite)[0])]
            raise DataError(
                f"{self.path}: the vector of document {wrong} has a number that is not finite; make them again"
            )
        return unit_rows(vectors)


class EmbeddingsWriter:
    """Writes the artefact shard by shard in corpus order; `close` makes it readable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lengths: list[int] = []
        self.dimensions = self.zero_rows = 0

    def add(self, vectors: Sequence[Path]) -> None:
        """Append a shard: the rows of the float16 arrays (n, d) in files, one in memory at a time."""
        forms = [map_array(part).shape for part in vectors]
        rows, self.dimensions = sum(form[0] for form in forms), forms[0][1]
        with (self.path / f"{len(self.lengths):05d}.npy").open("wb") as file:
            header = {"descr": "<f2", "fortran_order": False, "shape": (rows, self.dimensions)}
            np.lib.format.write_array_header_1_0(file, header)
            for part in vectors:
                block = np.load(part, allow_pickle=False)
                self.zero_rows += int((~block.any(axis=1)).sum())
                file.write(np.ascontiguousarray(block, dtype="<f2").tobytes())
        self.lengths.append(rows)

    def close(self) -> None:
        """Write the manifest, which a reader checks the arrays against."""
        files.write_json(self.path / MANIFEST, {"dimensions": self.dimensions, "rows": self.lengths})
