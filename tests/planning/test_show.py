"""What a plan says beside its figures, and its exit status."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import main
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.plan import make_plan
from paribus.planning.show import plan_document
from paribus.reporting.measures import SEEDS_TO_JUDGE
from support.plans import planned_run


def with_config(run: PreparedRun, **fields: Any) -> PreparedRun:
    return replace(run, job=replace(run.job, config=replace(run.job.config, **fields)))


# What the table will be able to say


def arms(root: Path, seeds: int) -> list[PreparedRun]:
    """Two rows of so many seeds; the corpus and the tasks are those of all."""
    run = planned_run(root)
    return [
        with_config(replace(run, factors=("arm",), job=replace(run.job, overrides=(f"arm={arm}",))), seed=seed)
        for arm in ("bpe", "unigram")
        for seed in range(seeds)
    ]


def test_rows_of_too_few_seeds_are_named(tmp_path: Path) -> None:
    for seeds in (1, SEEDS_TO_JUDGE - 1):
        runs = arms(tmp_path, seeds)
        plan = make_plan(runs)
        assert f"rows have {SEEDS_TO_JUDGE} seeds, and here they have {seeds}: seed=0,1,2" in plan.judgement[0]
        assert plan_document(plan, runs)["judgement"] == list(plan.judgement)
        others = [with_config(run, seed=7) for run in runs[::seeds]]
        assert make_plan(others).judgement[0].endswith("here they have 1: seed=7,8,9")
    assert make_plan(arms(tmp_path, SEEDS_TO_JUDGE)).judgement == ()


# A job script knows by the exit status of `paribus plan` whether `paribus run` would begin.

OWN = ("scale=tiny", "corpus=files", "tracking=none", "root=root")
HERE, ABSENT = "corpus.paths=[texts.txt]", "corpus.paths=[absent/*.jsonl]"


@pytest.mark.usefixtures("in_directory_with_text")
def test_a_plan_of_what_could_not_begin_is_whole_and_ends_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("budget=equal_text", "budget.text=1MB", "training.checkpoints=10000", "evaluation.last_checkpoints=2")
    for words, status, sentence in (
        ((HERE,), 0, None),
        ((ABSENT,), 1, "paribus run could not begin: corpus.paths: absent/*.jsonl: the pattern matches no file"),
        ((HERE, "evaluation=papers", "evaluation.data=nowhere"), 1, "paribus run could not begin: "),
        ((HERE, "engine.workers=1", "training.device=cuda:999"), 1, "paribus run could not begin: training.device"),
        ((HERE, "-m", "ordering=standard,in_context"), 1, "paribus run would refuse this: "),
        ((HERE, *few), 0, "paribus run may refuse bpe-merge_rank-standard-seed0"),
    ):
        assert main(["plan", *OWN, *words]) == status, words
        printed = capsys.readouterr().out
        assert "still to train: " in printed, words
        assert ("paribus run " in printed) == (sentence is not None), words
        assert sentence is None or sentence in printed, words
    assert main(["plan", "--json", *OWN, ABSENT]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "the pattern matches no file" in problem
