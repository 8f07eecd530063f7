"""Pinned outputs of the stages `embeddings` and `duplicates` on a tiny input.

A digest that changes means that the stage's `code_version` must change with it. What is computed in floating point is
pinned to rounded values.
"""

from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.ordering import DuplicatesConfig, ExactDuplicates, MinHashDuplicates, TfidfEmbedder
from paribus.ordering import duplicates as duplicates_stage
from paribus.ordering import embeddings as embeddings_stage
from paribus.ordering.duplicates import Duplicates, sign
from paribus.ordering.embeddings import Embeddings
from paribus.pipeline.graph import STAGES
from support.corpora import write_corpus
from support.embeddings import stage_context
from support.orders import digest, topics

PINNED = {
    "signatures": (1, "5eebf2ac7dabf17d"),
    "exact": (1, "65dc441271a1fccc"),
    "minhash": (1, "bb5ae076dfb0c6cd"),
}
TEXTS = topics(60)
TEXTS[31], TEXTS[17], TEXTS[40] = TEXTS[1], TEXTS[2].upper() + "!", "鲸鱼在海里"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", TEXTS, group_bytes=500, shard_bytes=2000)


def test_tfidf_embeddings_keep_their_cosines(tmp_path: Path, corpus: Path) -> None:
    context = stage_context(tmp_path / "run", {"embedder": TfidfEmbedder(dimensions=64)}, corpus=corpus)
    embeddings_stage.build(context)
    rows = Embeddings(context.output).rows(0, 60)
    cosines = rows @ rows.T
    assert STAGES["embeddings"].code_version == 2
    assert [round(float(cosines[0, j]), 2) for j in (1, 5, 15, 20)] == [0.09, 0.61, 0.66, 0.61]
    assert round(float(np.abs(cosines).mean()), 2) == 0.2


def test_signatures_keep_their_digest() -> None:
    signatures = sign(TEXTS, MinHashDuplicates(permutations=16))
    assert (STAGES["duplicates"].code_version, digest(signatures)) == PINNED["signatures"]


@pytest.mark.parametrize("config", [ExactDuplicates(), MinHashDuplicates(threshold=0.5)])
def test_duplicates_keep_their_digest(tmp_path: Path, corpus: Path, config: DuplicatesConfig) -> None:
    context = stage_context(tmp_path / "run", {"duplicates": config}, corpus=corpus)
    duplicates_stage.build(context)
    duplicates = Duplicates(context.output)
    columns = [duplicates.removed()[name].to_numpy() for name in ("document", "kept", "similarity", "bytes")]
    found = digest(duplicates.kept, *columns)
    assert (STAGES["duplicates"].code_version, found) == PINNED[config.kind]
