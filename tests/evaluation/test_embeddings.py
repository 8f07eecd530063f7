"""Uniformity of token embeddings and their projection, against direct computation."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.model import GPTNeoXModel, ModelConfig
from paribus.evaluation.embeddings import frequency_classes, read_embeddings, uniformity
from paribus.modeling.models import build_model, save_model
from support.evaluations import STAGE_MODEL


def drawn(count: int, width: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.5, 1, (count, width)).astype(np.float32)


def test_uniformity_is_the_log_mean_potential_of_pairs_of_unit_vectors() -> None:
    vectors = drawn(40)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [np.exp(-2 * np.sum((unit[i] - unit[j]) ** 2)) for i, j in itertools.combinations(range(40), 2)]
    assert uniformity(vectors) == pytest.approx(np.log(np.mean(pairs)), abs=1e-5)
    assert uniformity(7 * vectors) == pytest.approx(uniformity(vectors), abs=1e-5)


def test_frequency_classes_are_thirds_of_the_used_tokens_without_special_ones() -> None:
    counts = np.array([5, 0, 9, 1, 1, 3, 7, 100])
    classes = frequency_classes(counts, np.array([True] * 7 + [False]))
    assert {name: ids.tolist() for name, ids in classes.items()} == {
        "frequent": [2, 6],
        "medium": [0, 5],
        "rare": [3, 4],
        "unused": [1],
    }


def test_embeddings_of_each_family_are_read_from_its_checkpoint(tmp_path: Path) -> None:
    models: list[tuple[ModelConfig, set[str]]] = [
        (STAGE_MODEL, {"input", "output"}),
        (dataclasses.replace(STAGE_MODEL, tied_embeddings=True), {"input"}),
        (GPTNeoXModel(width=16, layers=1, heads=2, ffn_width=32, context_length=32), {"input", "output"}),
    ]
    for config, sides in models:
        model = build_model(config, 300, 0, eos_id=0)
        save_model(model, tmp_path)
        matrices = read_embeddings(tmp_path)
        assert matrices.keys() == sides
        for side, module in (("input", model.embedding), ("output", model.output)):
            assert side not in sides or (matrices[side] == module.weight.detach().numpy()).all()
