"""How often tests and intervals are wrong on simulated tables, and on halves of the seeds of trained models."""

import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from paribus.modeling.models import load_model
from paribus.reporting.columns import measure
from paribus.reporting.judgement import ArmScores
from paribus.reporting.measures import BITS_PER_BYTE
from paribus.reporting.runs import load_scores
from paribus.reporting.significance import LEVEL, Test, half_width, judged_together, paired_test, within_rows
from support.simulated_tables import FACTORIAL, MANY_TO_ONE, Tables, compared, with_p_value
from support.tables import record
from support.training_inputs import STEPS, config, execute, write_inputs

DRAWS = 1_500
CONTRASTS = pytest.mark.parametrize("weights", [FACTORIAL, MANY_TO_ONE], ids=["factorial", "many to one"])


@pytest.mark.parametrize(
    ("tables", "bounds"),
    [
        (Tables(2, 3, 0.5), (0.03, 0.075)),
        (Tables(4, 3, 0.25), (0.03, 0.065)),
        (Tables(4, 3, 0.95), (0.015, 0.05)),
        (Tables(8, 5, 0.75), (0.02, 0.055)),
        (Tables(4, 10, 0.0), (0.03, 0.065)),
    ],
    ids=lambda each: f"{each.rows} rows, {each.seeds} seeds, {each.share}" if isinstance(each, Tables) else None,
)
def test_one_in_twenty_tables_without_a_difference_shows_one(tables: Tables, bounds: tuple[float, float]) -> None:
    """The bounds are those of the whole calibration (docs/report.md) and three standard errors of so few draws."""
    generator = np.random.default_rng(9)
    positive = np.mean([compared(tables.table(generator)).p_value < 0.05 for _ in range(DRAWS)])
    sys.stdout.write(f"\nfalse positives, {tables}: {100 * positive:.2f} %\n")
    assert bounds[0] < positive < bounds[1]


@pytest.mark.parametrize(
    "tables",
    [Tables(2, 3, 0.0), Tables(2, 3, 0.75), Tables(2, 10, 0.5), Tables(8, 3, 0.0), Tables(8, 10, 0.75)],
    ids=str,
)
def test_a_difference_of_the_detectable_size_is_detected_four_times_in_five(tables: Tables) -> None:
    """Of the size that half of all tables show at most."""
    generator = np.random.default_rng(10)
    detectable = np.median([compared(tables.table(generator)).detectable for _ in range(DRAWS)])
    power = np.mean([compared(tables.table(generator, float(detectable))).p_value < 0.05 for _ in range(DRAWS)])
    sys.stdout.write(f"\npower at the detectable difference, {tables}: {100 * power:.1f} %\n")
    assert power == pytest.approx(0.8, abs=0.025)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_one_in_twenty_numbers_lies_beyond_its_half_width_where_runs_are_missing(share: float) -> None:
    generator = np.random.default_rng(13)
    missed = []
    for _ in range(DRAWS):
        means = np.sqrt(share) * generator.normal(size=5) + np.sqrt(1 - share) * generator.normal(size=(4, 5))
        means[2:, 4] = np.nan
        half = half_width(means[0][:, None], within_rows(means))
        assert half is not None
        missed.append(abs(means[0].mean()) > half)
    assert 0.035 < np.mean(missed) < 0.065


@CONTRASTS
@pytest.mark.parametrize("freedom", [4.0, 30.0])
def test_the_level_of_contrasts_is_that_of_the_largest_by_simulation(
    weights: Sequence[dict[int, float]], freedom: float
) -> None:
    generator = np.random.default_rng(0)
    arms = generator.normal(size=(200_000, 4))
    error = np.sqrt(generator.chisquare(freedom, size=200_000) / freedom)
    table = np.array([[each.get(arm, 0.0) for arm in range(4)] for each in weights])
    statistics = np.abs(arms @ (table / np.linalg.norm(table, axis=1, keepdims=True)).T).max(axis=1) / error
    (test, _), *_ = judged_together([with_p_value(0.5, freedom)] * 3, weights, 1)
    assert np.mean(statistics > test.quantile.at(1 - test.level / 2)) == pytest.approx(0.05, abs=0.002)


COMPARISONS, WITHIN = 10_000, 0.015
Scores = NDArray[np.float64]


def scores(name: str, draws: int) -> tuple[Scores, Scores, float]:
    """(draws, items) of two runs, and their true difference."""
    generator = np.random.default_rng(7)
    if name == "five seeds":
        base = generator.normal(0.6, 0.02, (draws, 5))
        return base + 0.01 + 0.005 * generator.normal(size=base.shape), base, 0.01
    if name == "bits per document":
        base = generator.gamma(4, 0.5, (draws, 120))
        return base - 0.1 + 0.4 * generator.standard_t(5, base.shape), base, -0.1
    difficulty = generator.random((draws, 300))
    ours, theirs = (0.5 * difficulty + 0.5 * generator.random(difficulty.shape) for _ in range(2))
    if name == "right or wrong":
        return (ours < 0.6).astype(float), (theirs < 0.5).astype(float), 0.68 - 0.5
    return ((ours < 0.4).astype(float) + (ours < 0.6)) / 2, (theirs < 0.5).astype(float), 0.0


@pytest.mark.parametrize("name", ["five seeds", "bits per document", "right or wrong", "mean of shots"])
def test_a_95_percent_interval_covers_the_true_difference(name: str) -> None:
    ours, theirs, truth = scores(name, COMPARISONS)
    tests = [paired_test(*pair, test="t") for pair in zip(ours, theirs, strict=True)]
    covered = np.mean([test.low <= truth <= test.high for test in tests])
    sys.stdout.write(f"\ncoverage, {name}: {100 * covered:.2f} %\n")
    assert covered == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize(
    ("name", "test"), [("right or wrong", "auto"), ("five seeds", "t"), ("bits per document", "t")]
)
def test_a_test_of_no_difference_is_positive_at_the_nominal_rate(name: str, test: Test) -> None:
    ours, theirs, truth = scores(name, COMPARISONS)
    if test == "auto":
        swapped = np.random.default_rng(8).random(ours.shape) < 0.5
        ours, theirs = np.where(swapped, ours, theirs), np.where(swapped, theirs, ours)
    else:
        ours = ours - truth
    tests = [paired_test(*pair, test=test) for pair in zip(ours, theirs, strict=True)]
    positive = np.mean([result.p_value < 0.05 for result in tests])
    sys.stdout.write(f"\nfalse positives, {name}, {tests[0].test}: {100 * positive:.2f} %\n")
    assert positive == pytest.approx(0.05, abs=WITHIN)


def test_the_bootstrap_agrees_with_the_t_test_on_many_items() -> None:
    ours, theirs, _ = scores("mean of shots", 3)
    for pair in zip(ours, theirs, strict=True):
        by_t, by_bootstrap = paired_test(*pair, test="t"), paired_test(*pair, test="bootstrap")
        assert (by_bootstrap.low, by_bootstrap.high) == pytest.approx((by_t.low, by_t.high), abs=0.01)
        assert by_bootstrap.p_value == pytest.approx(by_t.p_value, abs=0.03)


RUNS, HALVINGS = 12, 150


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
    for _ in range(HALVINGS):
        order = generator.permutation(RUNS)
        halves = [{seed: values[run] for seed, run in enumerate(half)} for half in np.split(order, 2)]
        tests.append(ArmScores(halves).test({1: 1.0, 0: -1.0}))  # type: ignore[list-item]
    p_values = np.array([test.p_value for test in tests if test])
    assert len(p_values) == HALVINGS
    assert np.mean(p_values < 0.05) <= 0.1 and np.mean(p_values < 0.01) <= 0.04
    assert 0.35 < p_values.mean() < 0.65
    # Seeds do move these models, so that there was something to find.
    assert np.quantile([abs(test.difference) for test in tests if test], 0.95) > 0.001


def bits_of(checkpoint: Path, texts: list[str]) -> list[float]:
    """Bits of each text after an end-of-document token, byte by byte, cut at the model's context."""
    model, bits = load_model(checkpoint).eval(), []
    for text in texts:
        tokens = [256, *text.encode()]
        nats = 0.0
        for start in range(0, len(tokens) - 1, 15):
            window = torch.tensor([tokens[start : start + 16]])
            with torch.inference_mode():
                predicted = model.logits(window)[0, :-1].log_softmax(-1)
            nats -= float(predicted.gather(1, window[0, 1:, None]).sum())
        bits.append(nats / math.log(2))
    return bits


@CONTRASTS
def test_one_in_twenty_tables_where_nothing_differs_shows_any_effect(weights: Sequence[dict[int, float]]) -> None:
    generator, draws, seeds, items = np.random.default_rng(1), 250, 3, 30
    wrong = 0
    for _ in range(draws):
        own = generator.normal(size=(4, seeds, 1)) + generator.normal(size=(4, 1, items))
        table = own + generator.normal(size=(1, seeds, 1)) + generator.normal(size=(4, seeds, items))
        scores = ArmScores([{seed: row[seed][None] for seed in range(seeds)} for row in table])
        tests = [scores.test(each) for each in weights]
        judged = judged_together([test for test in tests if test], weights, 1)
        wrong += any(adjusted < LEVEL for _, adjusted in judged)
    assert wrong / draws < 0.075
