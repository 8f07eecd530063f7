"""What a plan says that a table of its runs could not judge."""

from dataclasses import replace
from pathlib import Path

import pytest

from paribus.config.groups.experiment import ExperimentConfig, default_table
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.document import plan_document
from paribus.planning.plan import make_plan
from paribus.reporting.significance.least import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from support.plans import planned_run, store_record


def arms(root: Path, seeds: int) -> list[PreparedRun]:
    """Two rows of so many seeds; the corpus and the tasks are those of all."""
    run = planned_run(root)
    return [
        replace(
            run,
            factors=("arm",),
            job=replace(run.job, overrides=(f"arm={arm}",), config=replace(run.job.config, seed=seed)),
        )
        for arm in ("bpe", "unigram")
        for seed in range(seeds)
    ]


def heldout(run: PreparedRun, documents: int) -> None:
    found = {"documents": documents, "bytes": 1_000}
    store_record(run, "corpus", {"heldout": found, "train": {"documents": 10, "bytes": 1_000_000}})


@pytest.mark.parametrize("seeds", [1, SEEDS_TO_JUDGE - 1, SEEDS_TO_JUDGE])
def test_rows_of_too_few_seeds_are_told(tmp_path: Path, seeds: int) -> None:
    runs = arms(tmp_path, seeds)
    plan = make_plan(runs)
    assert plan_document(plan, runs)["judgement"] == list(plan.judgement)
    if seeds < SEEDS_TO_JUDGE:
        assert f"rows have {SEEDS_TO_JUDGE} seeds, and here they have {seeds}: seed=0,1,2" in plan.judgement[0]
        others = [replace(run, job=replace(run.job, config=replace(run.job.config, seed=7))) for run in runs[::seeds]]
        assert make_plan(others).judgement[0].endswith("here they have 1: seed=7,8,9")
    else:
        assert plan.judgement == ()


@pytest.mark.parametrize(("label", "lines"), [("words", 1), ("bpe", 0)])
def test_a_baseline_that_no_row_has_is_told_before_anything_is_made(tmp_path: Path, label: str, lines: int) -> None:
    experiment = ExperimentConfig(table=replace(default_table(), baseline={"arm": label}))
    runs = arms(tmp_path, SEEDS_TO_JUDGE)
    runs = [replace(run, job=replace(run.job, config=replace(run.job.config, experiment=experiment))) for run in runs]
    told = make_plan(runs).judgement
    assert len(told) == lines
    assert all(
        "no table of these runs alone: experiment.table.baseline: no row has arm: words; rows: bpe" in line
        for line in told
    )


@pytest.mark.parametrize("documents", [ITEMS_TO_JUDGE - 1, ITEMS_TO_JUDGE])
def test_too_few_held_out_documents_are_told_once_they_are_known(tmp_path: Path, documents: int) -> None:
    runs = arms(tmp_path, SEEDS_TO_JUDGE)
    assert make_plan(runs).judgement == ()
    heldout(runs[0], documents)
    told = make_plan(runs).judgement
    assert len(told) == (documents < ITEMS_TO_JUDGE)
    what = f"these runs score {documents} held-out documents (more with corpus.heldout or a larger corpus, which train"
    assert all(what in line for line in told)


@pytest.mark.parametrize("documents", [11, 12])
def test_a_task_that_takes_more_held_out_documents_is_told_of_one_run_too(tmp_path: Path, documents: int) -> None:
    run = planned_run(tmp_path)
    heldout(run, documents)
    told = [line for line in make_plan([run]).judgement if line.startswith("paribus run would fail")]
    assert len(told) == (documents < 12)
