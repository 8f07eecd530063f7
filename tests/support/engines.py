"""Every stage that maps over shards, made of one tiny corpus by one engine."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.config.groups.corpus import FilesCorpus, PydocsCorpus
from paribus.config.groups.ordering import (
    ClusterOrdering,
    LexicalOrdering,
    MinHashDuplicates,
    NeighboursConfig,
    TfidfEmbedder,
)
from paribus.config.groups.tokenization import BPETokenizer, LongestFirstEncoder, SpansPretokenizer
from paribus.corpus import build as corpus_stages
from paribus.engine import Engine
from paribus.engine.local import LocalEngine
from paribus.ordering import bm25 as lexical_stage
from paribus.ordering import contexts as contexts_stage
from paribus.ordering import duplicates as duplicates_stage
from paribus.ordering import embeddings as embeddings_stage
from paribus.ordering import neighbours as neighbours_stage
from paribus.ordering import orders as order_stage
from paribus.stage import JSON
from paribus.tokenization import build as tokenization_stages
from support.corpora import write_jsonl
from support.run_config import run_config
from support.stages import context_at, files

WORDS = ["red", "green", "blue", "sky", "sea", "naïve", "東京", "1998", "ordering", "tokens", "documents", "capital"]
NEIGHBOURS = NeighboursConfig(index="ivf", retrieved=3, shard_documents=90, recall_sample=20)
PACKAGES = ("packaging",)


def write_files(directory: Path) -> FilesCorpus:
    """Three files of documents, of which some say nearly the same."""
    directory.mkdir(parents=True)
    texts = [" ".join(WORDS[(i * j * j) % len(WORDS)] for j in range(1, 4 + i % 9)) + f" {i // 2}" for i in range(210)]
    rows = [{"text": text} for text in texts]
    rows[70]["text"] = None  # type: ignore[assignment]
    paths = [write_jsonl(directory / f"{n}.jsonl", rows[n * 70 : n * 70 + 70]) for n in range(3)]
    return FilesCorpus(paths=tuple(map(str, paths)), heldout=0.1, on_invalid="skip", limit=9_000)


class ArtefactsByEngine:
    """The artefacts below `root`, made as they are asked for, and what their stages return."""

    def __init__(self, root: Path, engine: Engine) -> None:
        self.root, self.engine = root, engine
        self.results: dict[str, dict[str, JSON]] = {}
        self.config = run_config(
            corpus=write_files(root / "files"),
            tokenizer=BPETokenizer(vocab_size=300, sample=6_000),
            embedder=TfidfEmbedder(dimensions=6, fit_documents=25),
            neighbours=NEIGHBOURS,
            duplicates=MinHashDuplicates(threshold=0.7, permutations=64),
        )

    def make(self, name: str, build: Callable[[Any], dict[str, JSON]], *inputs: str, **groups: Any) -> None:
        """Build artefact `name` from the artefacts `inputs`."""
        config = dataclasses.replace(self.config, **groups)
        paths = {stage.partition(".")[0]: self.root / stage for stage in inputs}
        context = context_at(self.root / name, self.root / f"{name}.work", config, paths)
        self.results[name] = build(dataclasses.replace(context, engine=self.engine))

    def make_all(self) -> "ArtefactsByEngine":
        """Make all artefacts."""
        self.make("corpus", corpus_stages.build)
        self.make("corpus.pydocs", corpus_stages.build, corpus=PydocsCorpus(packages=PACKAGES))
        self.make("vocabulary", tokenization_stages.build_vocabulary, "corpus")
        self.make("tokens", tokenization_stages.build_tokens, "corpus", "vocabulary", encoder=LongestFirstEncoder())
        spans = {"pretokenizer": SpansPretokenizer()}
        self.make("vocabulary.spans", tokenization_stages.build_vocabulary, "corpus", **spans)
        self.make("tokens.spans", tokenization_stages.build_tokens, "corpus", "vocabulary.spans", **spans)
        self.make("embeddings", embeddings_stage.build, "corpus")
        self.make("neighbours", neighbours_stage.build, "embeddings")
        self.make("duplicates", duplicates_stage.build, "corpus")
        self.make("lexical_neighbours", lexical_stage.build, "corpus", ordering=LexicalOrdering())
        self.make("order", order_stage.build, "corpus", "duplicates", "embeddings", ordering=ClusterOrdering())
        self.make("contexts", contexts_stage.build, "tokens", "order")
        return self

    def files(self, name: str) -> dict[str, bytes]:
        """Contents of the files of an artefact."""
        return files(self.root / name)


class WithoutSharedMemory(LocalEngine):
    """An engine whose workers have no memory in common with the stage's process, as those of a cluster."""

    shares_memory = False
