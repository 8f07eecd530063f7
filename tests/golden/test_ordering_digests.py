"""Pinned outputs of the stages `embeddings` and `neighbours` on a tiny input.

A digest that changes means that the stage's `code_version` must change with it.
"""

from pathlib import Path

import numpy as np

from paribus.ordering import embeddings as embeddings_stage
from paribus.ordering import neighbours as neighbours_stage
from paribus.ordering.arrays import NeighbourLists
from paribus.ordering.embeddings import Embeddings
from support.corpora import write_corpus
from support.orders import digest, formula_vectors, stage_context, topics, write_embeddings

NEIGHBOURS = "4367e3f31055cf69"
SIMILARITIES = "1893e6ea196aa668"


def test_embeddings_keep_their_cosines(tmp_path: Path) -> None:
    context = stage_context(tmp_path, "embeddings", corpus=write_corpus(tmp_path / "corpus", topics(60)))
    embeddings_stage.build(context)
    embeddings = Embeddings(context.output).rows(0, 60)
    cosines = embeddings @ embeddings.T
    assert [round(float(cosines[0, j]), 2) for j in (1, 5, 15, 20)] == [0.09, 0.6, 0.65, 0.6]
    assert round(float(np.abs(cosines).mean()), 2) == 0.2


def test_neighbours_keep_their_digests(tmp_path: Path) -> None:
    embeddings = write_embeddings(tmp_path / "embeddings", formula_vectors())
    context = stage_context(tmp_path, "neighbours", embeddings=embeddings)
    neighbours_stage.build(context)
    lists = NeighbourLists(context.output)
    assert digest(lists.ids) == NEIGHBOURS
    assert digest(lists.similarities.round(4)) == SIMILARITIES
