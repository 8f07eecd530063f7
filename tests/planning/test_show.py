"""What a plan says beside its figures, and its exit status."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.checks import compose_command
from paribus.cli import main
from paribus.config.arguments import parse
from paribus.config.groups.evaluation import ExperimentConfig, default_table
from paribus.config.groups.ordering import InContextOrdering, NeighboursConfig, PairPacking
from paribus.config.groups.tokenization import DropoutEncoder
from paribus.config.groups.training import EqualTextBudget
from paribus.config.units import format_count, format_size
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.plan import Plan, make_plan
from paribus.planning.show import bill, plan_document
from paribus.reporting.measures import ITEMS_TO_JUDGE, SEEDS_TO_JUDGE
from support.plans import planned_run, shown, store_record

CORPUS = {"train": {"documents": 10, "bytes": 1_000_000}}


def test_draws_take_room_as_often_as_they_are(tmp_path: Path) -> None:
    pairs = {"train": {"documents": 1_000, "bytes": 100_000, "target_bytes": 60_000}}
    told = {}
    for draws in (1, 32):
        run = planned_run(tmp_path / str(draws), encoder=DropoutEncoder(draws=draws), packing=PairPacking())
        assert make_plan([run]).tokens_bytes == 0
        store_record(run, "corpus", pairs)
        plan = make_plan([run])
        told[draws] = "\n".join(bill(plan))
        # A byte is a token of two bytes; bounds and lengths of sources are of eight.
        assert plan.tokens_bytes == draws * (2 * 100_000 + 2 * 8 * 1_000) + 8 * 1_000
    assert "still to encode: ~218.8 KiB of tokens" in told[1]
    assert "still to encode: ~6.6 MiB of tokens" in told[32]


def test_documents_take_the_room_of_their_tokens_once_there_is_a_corpus(tmp_path: Path) -> None:
    run = planned_run(tmp_path)
    assert "still to encode" not in "\n".join(bill(make_plan([run])))
    store_record(run, "corpus", CORPUS)
    assert make_plan([run]).tokens_bytes == 2 * 1_000_000 + 2 * 8 * 10
    store_record(run, "tokens", {"documents": 10, "bytes": 1_000_000, "tokens": 1_000_000})
    assert "still to encode" not in "\n".join(bill(make_plan([run])))


def until(run: PreparedRun, stage: Any) -> PreparedRun:
    return replace(run, job=replace(run.job, config=replace(run.job.config, until=stage)))


def test_stages_behind_until_are_neither_planned_nor_counted(tmp_path: Path) -> None:
    plan = make_plan([until(planned_run(tmp_path), "contexts")])
    assert {stage.name for stage in plan.stages} == {"corpus", "vocabulary", "tokens", "order", "contexts"}
    assert (plan.trainings, plan.flops, plan.disk_bytes) == ([], 0, 0)
    assert plan.device_hours == 0
    told = "\n".join(bill(plan))
    assert "until=contexts: what follows that stage, or does not lead to it, is neither made nor counted" in told
    assert "to train" not in told


PAPER = NeighboursConfig(index="ivf_pq", lists=32_768, probes=64, code_size=256, shard_documents=50_000_000)


@pytest.mark.parametrize(
    ("neighbours", "documents", "warned"),
    [
        (PAPER, 235_266_464, "32,768 quantized lists of ~235.3M documents take about 9,276 core-hours"),
        (PAPER, 2_000_000, None),
        (NeighboursConfig(), 2_000_000, None),
        (NeighboursConfig(), 235_266_464, "core-hours"),
        (NeighboursConfig(index="flat"), 235_266_464, None),
    ],
)
@pytest.mark.parametrize("made", [True, False])
def test_a_search_that_takes_many_core_hours_is_warned_of(
    tmp_path: Path, neighbours: NeighboursConfig, documents: int, warned: str | None, made: bool
) -> None:
    """Counted in the corpus, or taken from the text of the budget, in documents of 6.4 kB, where there is none."""
    budget = EqualTextBudget(text=6_400 * documents)
    run = planned_run(tmp_path, ordering=InContextOrdering(), neighbours=neighbours, budget=budget)
    if made:
        store_record(run, "corpus", {"train": {"documents": documents, "bytes": 6_400 * documents}})
    told = "\n".join(make_plan([run]).judgement)
    assert warned in told if warned else "core-hours" not in told
    store_record(run, "neighbours", {})
    assert "core-hours" not in "\n".join(make_plan([run]).judgement)


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


SIZES = ("tokenizer=bpe,scaffold_bpe", "tokenizer.vocab_size=300,512", "training.learning_rate=1e-3,2e-3")


def plan_of(root: Path, *overrides: str) -> Plan:
    command = ["scale=tiny", "corpus=pydocs_small", f"root={root}", *overrides]
    return make_plan(prepare_runs(compose_command(parse(command)), tolerate_missing=True))


@pytest.mark.parametrize("width", [80, 140])
def test_every_run_stands_once_with_whole_words_and_numbers(tmp_path: Path, width: int) -> None:
    plan = plan_of(tmp_path, "-m", *SIZES)
    text = shown(plan, width)
    table = text.partition("Runs")[2].partition("memory: of one")[0]
    assert all(len(line) <= width for line in table.splitlines())
    words = table.split()
    assert len(plan.runs) == 8
    for word, times in (("tokenizer.vocab_size=300", 4), ("training.learning_rate=0.002", 4), ("scaffold_bpe", 4)):
        assert words.count(word) == times
    for run in plan.runs:
        assert f"~{format_count(run.parameters)}" in words
        assert f"~{format_size(run.disk_bytes)}" in " ".join(words)


def test_a_run_alone_has_a_line(tmp_path: Path) -> None:
    text = shown(plan_of(tmp_path), 80)
    assert text.count("bpe-merge_rank-standard-seed0") == 1
    assert "bpe-merge_rank-standard-seed0: tokens 64.0K, text ~118.1 KiB, steps 125," in text


# The exit status of `paribus plan`, by which a job script knows whether `paribus run` would begin.

OWN = ("scale=tiny", "corpus=files", "tracking=none", "root=root")
HERE, ABSENT = "corpus.paths=[texts.txt]", "corpus.paths=[absent/*.jsonl]"
TWO_ARMS = ("-m", "ordering=standard,in_context")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ((HERE,), 0, None),
        ((ABSENT,), 1, "paribus run could not begin: corpus.paths: absent/*.jsonl: the pattern matches no file"),
        ((HERE, "evaluation=papers", "evaluation.data=nowhere"), 1, "paribus run could not begin: "),
        ((HERE, "engine.workers=1", "training.device=cuda:999"), 1, "paribus run could not begin: training.device"),
        ((HERE, *TWO_ARMS), 1, "paribus run would refuse this: "),
        ((HERE, "budget=equal_text", "budget.text=1MB", "training.checkpoints=10000", "evaluation.last_checkpoints=2"),
         0, "paribus run may refuse bpe-merge_rank-standard-seed0"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("beside_text")
def test_a_plan_of_what_could_not_begin_is_whole_and_ends_with_status_1(
    words: tuple[str, ...], status: int, told: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *OWN, *words]) == status
    printed = capsys.readouterr().out
    assert "still to train: " in printed
    assert ("paribus run " in printed) == (told is not None)
    assert told is None or told in printed


@pytest.mark.usefixtures("beside_text")
def test_a_document_ends_as_the_plan_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--json", *OWN, ABSENT]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "the pattern matches no file" in problem
