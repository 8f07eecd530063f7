"""The stage `embeddings`: tokenizer-free, so every tokenizer of a sweep shares it.

It is a map over row groups of the training split, or pieces of them. What is finished lies in `context.work`, so that a
kill costs no more than the parts in hand.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

from paribus.config.groups.embedding import MiniLMEmbedder, TfidfEmbedder, TransformersEmbedder
from paribus.corpus.artifact import CorpusArtifact
from paribus.engine import Engine
from paribus.engine.local import LocalEngine
from paribus.ordering.embed.artifact import EmbeddingsWriter
from paribus.ordering.embed.directory import embedder_directory
from paribus.ordering.embed.embedder import PartEmbedding
from paribus.ordering.parts import CorpusPart, corpus_parts
from paribus.stage import JSON, Reporter, StageContext

ENCODER_BYTES = 2**20
"""Text of a part for an encoder: one or two minutes of one core for a small one."""


def build(context: StageContext) -> dict[str, JSON]:
    """Write the vectors of the training split.

    Raises DataError for an empty split or unreadable files of an embedder, ConfigurationError for what an embedder
    cannot do, NumericalError for one whose vectors are not finite.
    """
    slow = isinstance(context.config.embedder, TransformersEmbedder | MiniLMEmbedder)
    corpus = CorpusArtifact(context.inputs["corpus"])
    parts = corpus_parts(corpus, context.work / "parts", bytes=ENCODER_BYTES if slow else None)
    config = context.config.embedder
    directory = _fitted(config, parts, context) if isinstance(config, TfidfEmbedder) else embedder_directory(config)
    embed = PartEmbedding(config, directory)
    facts = embed.embedder.facts()
    threads = embed.embedder.threads
    engine: Engine = LocalEngine(threads) if threads else context.engine
    _watch(engine.map(embed, parts, releases_gil=threads > 0), parts, context.report)
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


def _fitted(config: TfidfEmbedder, parts: list[CorpusPart], context: StageContext) -> Path:
    """The files of TF-IDF, fitted first if they are not there."""
    from paribus.ordering.embed.sample import sample_texts
    from paribus.ordering.embed.tfidf import TfidfSvd

    directory = context.work / "tfidf_svd"
    if not directory.exists():
        fitted = min(config.fit_documents, _documents(parts))
        context.report.progress(0, fitted, unit="documents", doing="fitting TF-IDF and SVD")
        sample = sample_texts(parts, config.fit_documents, config.max_characters, context.engine)
        TfidfSvd.fit(sample, config).save(directory)
    return directory


def _watch(finished: Iterable[CorpusPart], parts: list[CorpusPart], report: Reporter) -> None:
    total, done = _documents(parts), 0
    report.progress(done, total, unit="documents", doing="embedding documents")
    for part in finished:
        done += part.rows
        report.progress(done, total, unit="documents", doing="embedding documents")


def _documents(parts: list[CorpusPart]) -> int:
    return parts[-1].start + parts[-1].rows
