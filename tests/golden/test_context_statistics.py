"""Pinned numbers of the stage `context_statistics` on a tiny input."""

import json
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.model import LlamaModel
from paribus.ordering.contexts import build as build_contexts
from paribus.ordering.statistics import build
from support.orders import formula_vectors, stage_context, write_embeddings
from support.training_inputs import write_inputs

NUMBERS = {
    "documents": 40,
    "removed": 0,
    "entries": 40,
    "contexts": 8,
    "target_tokens": 1600,
    "documents_per_context": 5.5,
    "cut_share": 8 / 37,
    "padding": 0.0,
    "left_out_tokens": 168,
}
SIMILARITIES = {
    "similarity_inside": -0.01382,
    "similarity_shuffled": 0.00588,
    "similarity_random": -0.01810,
    "similarity_following": 0.00710,
    "similarity_adjacent": -0.01422,
}


def test_the_statistics_of_contexts_keep_their_values(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    embeddings = write_embeddings(tmp_path / "embeddings", formula_vectors(40, 16))
    model = LlamaModel(width=8, layers=1, heads=1, ffn_width=8, context_length=200)
    groups = {"model": model}
    contexts = stage_context(tmp_path, "contexts", groups=groups, seed=5, **inputs)
    build_contexts(contexts)
    made = {**inputs, "contexts": contexts.output, "embeddings": embeddings}
    context = stage_context(tmp_path, "context_statistics", groups=groups, seed=5, **made)
    numbers = build(context)
    assert {name: numbers[name] for name in NUMBERS} == NUMBERS
    similar = {name: value for name, value in numbers.items() if name.startswith("similarity")}
    assert similar == pytest.approx(SIMILARITIES, abs=1e-4)
    curves = json.loads((context.output / "statistics.json").read_text(encoding="utf-8"))["curves"]
    assert sum(curves["similarity_inside"]) == sum(curves["contexts_of_documents"]) == 8
    assert len(curves["positions"]) == 40 and sorted(curves["positions"]) == [place / 40 for place in range(40)]
    assert np.nanmean(curves["similarity_along"]) == pytest.approx(similar["similarity_adjacent"], abs=0.02)
