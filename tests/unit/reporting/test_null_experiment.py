"""One arm under two names: the table's test finds what is not there in 5 % of draws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paribus.errors import ConfigurationError
from paribus.reporting.significance import judgement
from paribus.reporting.significance.items import paired_tests
from paribus.reporting.significance.null_experiment import halves, null_experiment
from paribus.reporting.table.comparison import compare
from paribus.reporting.table.frame import RunRecord
from support.tables import record

FACTORS = ("tokenizer",)
DOCUMENTS = 60


def runs(root: Path, tokenizer: str, seeds: int, of_seeds: float) -> list[RunRecord]:
    """Runs of which a seed moves all documents by a deviation of `of_seeds`, and each by one of 40 bits."""
    generator = np.random.default_rng(3)
    difficulty = generator.normal(2_000, 300, DOCUMENTS)
    made = []
    for seed in range(seeds):
        bits = difficulty + of_seeds * generator.normal() + 40 * generator.normal(size=DOCUMENTS)
        scored = {("continuation", 0): np.ones(40, dtype=bool)}
        made.append(
            record(
                root, f"{tokenizer}{seed}", {"tokenizer": tokenizer}, scored, seed=seed,
                heldout=[(each, 1_000) for each in bits],
            )
        )  # fmt: skip
    return made


@pytest.mark.parametrize("of_seeds", [0.0, 30.0])
def test_halves_of_one_arm_differ_in_about_a_twentieth_of_draws(tmp_path: Path, of_seeds: float) -> None:
    comparison = compare(runs(tmp_path, "bpe", 20, of_seeds), FACTORS)
    (found,) = (each for each in halves(comparison.rows[0], comparison, 300) if each.column.key == "bits_per_byte")
    assert len(found.p_values) == 300
    assert 0.01 <= found.share_below(0.05) <= 0.09
    assert found.share_below(0.01) <= 0.03
    assert abs(np.mean(found.differences)) < 0.01


def test_a_test_over_items_alone_finds_what_seeds_did(tmp_path: Path) -> None:
    """That the share is about 5 % is not for want of power: without seeds in the test it is far more."""
    scores = compare(made := runs(tmp_path, "bpe", 20, 30.0), FACTORS).scores
    bits = np.array([scores[run.run_id].heldout.bits[0] for run in made])
    generator, found = np.random.default_rng(0), []
    for _ in range(100):
        order = generator.permutation(20)
        found.append(
            paired_tests([(bits[order[:10]].mean(axis=0), bits[order[10:]].mean(axis=0))], test="t")[0].p_value
        )
    assert np.mean(np.array(found) < 0.05) > 0.3


def test_what_seeds_do_not_vary_is_said(tmp_path: Path) -> None:
    seeds = {"weights": None, "order": 0, "contexts": None, "dropout": None}
    made = [replace(run, config={**run.config, "seeds": seeds}) for run in runs(tmp_path, "bpe", 6, 1.0)]
    lines = null_experiment(compare(made, FACTORS), draws=2)
    assert any(line.startswith("Warning: seeds.order is the same in all runs of a row") for line in lines)


def test_each_arm_with_enough_runs_has_its_lines(tmp_path: Path) -> None:
    made = [*runs(tmp_path / "a", "bpe", 7, 30.0), *runs(tmp_path / "b", "bytes", 5, 30.0)]
    lines = null_experiment(compare(made, FACTORS), draws=50)
    assert lines[0] == "bpe: 7 runs in two halves of 3 seeds at random, 50 times, of 70 ways to halve them"
    assert any("bits / byte: p < 0.05 in " in line for line in lines[1:]), lines
    assert lines[-1] == "With fewer than 6 runs, and so left out: bytes."


def test_an_arm_without_enough_items_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "ITEMS_TO_JUDGE", 1_000)
    lines = null_experiment(compare(runs(tmp_path, "bpe", 6, 1.0), FACTORS), draws=2)
    assert lines[1:] == ["  no score of the model is of 30 items or documents, so nothing is tested"]


def test_too_few_runs_are_refused_with_how_many_it_takes(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"needs 6 finished runs of one arm, 3 for each half, and there are 5;"
    ):
        null_experiment(compare(runs(tmp_path, "bpe", 5, 1.0), FACTORS))
