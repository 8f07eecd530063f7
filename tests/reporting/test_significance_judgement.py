"""Halves of the seeds of one arm, with models that were really trained: the test of a table finds nothing."""

import math
import random
from pathlib import Path

import numpy as np
import torch

from paribus.modeling.models import load_model
from paribus.reporting.columns import measure
from paribus.reporting.judgement import ArmScores
from paribus.reporting.measures import BITS_PER_BYTE
from paribus.reporting.runs import load_scores
from support.tables import record
from support.training_inputs import STEPS, config, execute, write_inputs

RUNS, DRAWS = 12, 150


def test_halves_of_the_seeds_of_one_training_do_not_differ(tmp_path: Path) -> None:
    inputs, scored = write_inputs(tmp_path), {("continuation", 0): np.ones(40, dtype=bool)}
    draw = random.Random(1)
    words = ["all", "else", "being", "equal", "water", "sand", "1", "2", "3"]
    texts = [" ".join(draw.choices(words, k=draw.randint(3, 12))) for _ in range(50)]
    runs = []
    for seed in range(RUNS):
        execute(tmp_path, str(seed), inputs, config(seed=seed))
        bits = bits_of(tmp_path / str(seed) / "output" / f"step_{STEPS:08d}", texts)
        heldout = list(zip(bits, map(len, texts), strict=True))
        runs.append(record(tmp_path, f"run{seed}", {"tokenizer": "bytes"}, scored, seed=seed, heldout=heldout))
    values = [measure(BITS_PER_BYTE, run.training, load_scores(run.scores)) for run in runs if run.scores]
    generator, tests = np.random.default_rng(RUNS), []
    for _ in range(DRAWS):
        order = generator.permutation(RUNS)
        halves = [{seed: values[run] for seed, run in enumerate(half)} for half in np.split(order, 2)]
        tests.append(ArmScores(halves).test({1: 1.0, 0: -1.0}))  # type: ignore[list-item]
    p_values = np.array([test.p_value for test in tests if test])
    assert len(p_values) == DRAWS
    assert np.mean(p_values < 0.05) <= 0.1 and np.mean(p_values < 0.01) <= 0.04
    assert 0.35 < p_values.mean() < 0.65
    # Seeds do move these models, so that there was something to find.
    assert np.quantile([abs(test.difference) for test in tests if test], 0.95) > 0.001


def bits_of(checkpoint: Path, texts: list[str]) -> list[float]:
    """Bits of each text after an end-of-document token, byte by byte, cut at the model's context."""
    model, found = load_model(checkpoint).eval(), []
    for text in texts:
        tokens = [256, *text.encode()]
        nats = 0.0
        for start in range(0, len(tokens) - 1, 15):
            window = torch.tensor([tokens[start : start + 16]])
            with torch.inference_mode():
                predicted = model.logits(window)[0, :-1].log_softmax(-1)
            nats -= float(predicted.gather(1, window[0, 1:, None]).sum())
        found.append(nats / math.log(2))
    return found
