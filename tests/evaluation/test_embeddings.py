"""Classes of tokens by their frequency, and embeddings as they are read from checkpoints."""

import dataclasses
from pathlib import Path

import numpy as np

from paribus.config.groups.model import GPTNeoXModel, ModelConfig
from paribus.evaluation.embeddings import frequency_classes, read_embeddings
from paribus.modeling.models import build_model, save_model
from support.evaluations import STAGE_MODEL


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
