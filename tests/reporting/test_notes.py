"""What the notes say of rows that are not what a reader takes them for, and what is not judged for that."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.evaluation import default_table
from paribus.ordering.arrays import save_array
from paribus.reporting.columns import Cell
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.verdict import summary
from support.bits_tables import FACTORS, runs_of
from support.tables import notes, record

SEEDS = (0.0, 0.001, 0.002)
WORSE = (0.3, 0.301, 0.302)


def notes_with(comparison: Comparison, part: str) -> list[str]:
    return [line for line in notes(comparison) if part in line]


def note(comparison: Comparison, part: str) -> str:
    (line,) = notes_with(comparison, part)
    return line


def bits(comparison: Comparison, label: str) -> Cell:
    return next(row.cells["bits_per_byte"] for row in comparison.rows if row.labels == (label,))


def test_runs_that_diverged_are_counted(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, {"bpe": SEEDS, "bytes": WORSE})
    failed = MissingRun({"tokenizer": "bytes"}, "failed: the loss of step 40 is not finite", diverged=True)
    assert note(compare(runs, FACTORS, missing=[failed]), "diverged").endswith("than the row is: bytes: 1 beside 3.")


def test_seeds_that_go_on_from_another_checkpoint_than_their_baseline_judge_no_model(tmp_path: Path) -> None:
    def continued(name: str, **starts: str) -> list[FinishedRun]:
        """A row a tokenizer, from one of these checkpoints each."""
        runs = []
        for place, (label, checkpoint) in enumerate(starts.items()):
            config = {"start": {"kind": "checkpoint"}, "fingerprints": {"start": {"model": checkpoint}}}
            shifts = {label: [0.5 * place + seed for seed in SEEDS]}
            for each in runs_of(tmp_path / name / checkpoint, shifts, config=config):
                runs.append(replace(each, factors={**each.factors, "start": checkpoint}))
        return runs

    factors = ("tokenizer", "start")
    same = compare(continued("same", bpe="a", other="a"), factors)
    assert same.rows[1].cells["bits_per_byte"].p_adjusted is not None
    assert note(same, "Training goes on from checkpoints")
    apart = compare(continued("apart", bpe="a", other="b"), factors)
    cell = apart.rows[1].cells["bits_per_byte"]
    assert (cell.p_value, cell.p_adjusted, cell.detectable, cell.best) == (None, None, None, False)
    assert note(apart, "another checkpoint than the row").endswith("moved them further: other · b.")

    both = [*continued("1", bpe="a", other="a"), *continued("2", bpe="b", other="b")]
    comparison = compare(both, ("start", "tokenizer"), table=replace(default_table(), baseline={"tokenizer": "bpe"}))
    (effect,) = comparison.effects
    assert (effect.contrast.values, effect.contrast.pairs) == (("other",), ((1, 0), (3, 2)))
    assert effect.p_adjusted is not None
    assert not notes_with(comparison, "another checkpoint than the row")


def test_bits_of_a_lossy_tokenizer_are_not_judged_against_those_of_a_lossless_one(tmp_path: Path) -> None:
    whole = runs_of(tmp_path / "0", {"bpe": SEEDS, "bytes": WORSE})
    comparison = compare([*whole, *runs_of(tmp_path / "1", {"stripped": WORSE}, lossy=True)], FACTORS)
    assert note(comparison, "scored text").endswith("that lose none: stripped.")
    assert bits(comparison, "bytes").p_adjusted < 0.05
    lossy = bits(comparison, "stripped")
    assert lossy.difference == pytest.approx(0.3, abs=0.01)
    assert (lossy.p_value, lossy.interval, lossy.p_adjusted, lossy.detectable) == (None, None, None, None)
    assert [effect.contrast.values for effect in comparison.effects] == [("bytes",)]
    assert not any(bits(comparison, each).best for each in ("bpe", "bytes", "stripped"))
    finding, reason = summary(comparison).lines
    assert "bytes is worse than bpe" in finding
    assert reason.startswith("Nothing can be said of stripped: ")
    assert not notes_with(compare(whole, FACTORS), "scored text")


def test_tokenizers_that_lose_text_alone_are_judged_against_each_other_and_two_unlike_are_not(tmp_path: Path) -> None:
    lossy = runs_of(tmp_path / "0", {"stripped": SEEDS, "words": WORSE}, lossy=True)
    assert bits(compare(lossy, FACTORS), "words").p_adjusted < 0.05
    unlike = compare([*lossy[:3], *runs_of(tmp_path / "1", {"bytes": WORSE})], FACTORS)
    (reason,) = summary(unlike).lines
    assert reason.endswith(": the tokenizer of one of two rows that are compared loses text, and the other's does not.")


@pytest.mark.parametrize("changed", [0, 1])
def test_a_lossy_tokenizer_is_judged_where_it_gives_back_all_that_is_scored(changed: int, tmp_path: Path) -> None:
    whole, lossy = runs_of(tmp_path / "0", {"bpe": SEEDS}), runs_of(tmp_path / "1", {"llama": WORSE}, lossy=True)
    for each in lossy:
        assert each.scores is not None
        statistics = {"heldout": {}, "tasks": {}, "changed_documents": changed}
        (each.scores / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    gone = runs_of(tmp_path / "2", {"llama": (0.3,) * 4}, lossy=True)[3:]
    shutil.rmtree(gone[0].scores or "")
    for runs in ([*whole, *lossy], [*whole, *lossy, *gone]):
        comparison = compare(runs, FACTORS)
        assert (bits(comparison, "llama").p_adjusted is None) is bool(changed)
        assert bool(notes_with(comparison, "lose some of the scored text")) is bool(changed)


def reading(
    root: Path, tokenizer: str, seed: int, readings: Sequence[int], straddling: float | None = None
) -> FinishedRun:
    """A run that has read so many times each piece of text."""
    trained = record(root, f"{tokenizer}{seed}", {"tokenizer": tokenizer}, {("boolq", 0): [True] * 40}, seed=seed)
    path = root / f"{tokenizer}{seed}.npy"
    save_array(path, np.array(readings, dtype=np.uint8))
    config = trained.config | {"packing": {"shuffle": "text", "kind": "concatenate", "stretch_bytes": None}}
    training = {**trained.training, "epochs": 0.5, "straddling": straddling}
    return replace(trained, config=config, training=training, readings=path)


def common_text(runs: Sequence[FinishedRun]) -> list[str]:
    return [line for line in notes(compare(runs, FACTORS)) if "training text" in line.lower() and "share" in line]


def test_the_share_of_common_text_is_of_each_row_against_its_baseline_at_one_seed(tmp_path: Path) -> None:
    # The rows of one seed have 19 of 20 readings in common, or all; those of different seeds none.
    first = [[1] * 20 + [0] * 20, [0] * 20 + [1] * 20]
    runs = [reading(tmp_path, "bpe", seed, first[seed]) for seed in (0, 1)]
    runs += [reading(tmp_path, "bytes", 0, [1] * 19 + [0] * 20 + [1]), reading(tmp_path, "bytes", 1, first[1])]
    assert common_text(runs) == [
        "Training text that two rows which are compared share at one seed: 95.0% to 100.0% of what the one that read "
        "less has read, 95.0% to 100.0% of what the other has."
    ]
    for straddling in (0.03, 0.09):
        runs += [reading(tmp_path, f"{straddling}", 0, first[0], straddling)]
    assert common_text(runs)[0].endswith(" Contexts with text of two stretches of what is shuffled: up to 9.0%.")


def accuracies(root: Path, label: str, seed: int, tasks: Sequence[str], **more: Any) -> FinishedRun:
    right = {
        (task, 0): np.random.default_rng([len(label), seed, index]).random(60) < 0.3 + 0.5 * (label == "unigram")
        for index, task in enumerate(tasks)
    }
    return record(root, f"{label}{seed}", {"tokenizer": label}, right, seed=seed, **more)


ARMS = [(label, seed) for label in ("bpe", "unigram") for seed in range(3)]


def test_prompts_that_rows_cut_otherwise_and_few_that_fit_allow_no_inference(tmp_path: Path) -> None:
    names = [f"piqa-{item:04d}" for item in range(40)]
    cut = {"bpe": [], "unigram": names}
    runs = [
        accuracies(
            tmp_path,
            *arm,
            ("piqa",),
            statistics={"heldout": {}, "tasks": {"piqa": {"truncated_items": {"0": cut[arm[0]]}}}},
        )
        for arm in ARMS
    ]
    comparison = compare(runs, FACTORS)
    cell = comparison.rows[1].cells["piqa/mean"]
    assert (cell.p_value, cell.p_adjusted, cell.half_width, cell.best) == (None, None, None, False)
    assert "piqa 0-shot (20 whose prompt fits every run)" in note(comparison, "No interval, test or bold")
    (reason,) = summary(comparison).lines
    assert ": the prompts that fit every run are those of 20 items, and a judgement takes 30." in reason
