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


def bill_of(*runs: PreparedRun) -> str:
    return "\n".join(bill(make_plan(runs)))


def with_config(run: PreparedRun, **fields: Any) -> PreparedRun:
    return replace(run, job=replace(run.job, config=replace(run.job.config, **fields)))


def test_tokens_take_room_once_there_is_a_corpus_and_as_often_as_they_are_drawn(tmp_path: Path) -> None:
    run = planned_run(tmp_path)
    assert "still to encode" not in bill_of(run)
    store_record(run, "corpus", {"train": {"documents": 10, "bytes": 1_000_000}})
    assert make_plan([run]).tokens_bytes == 2 * 1_000_000 + 2 * 8 * 10
    store_record(run, "tokens", {"documents": 10, "bytes": 1_000_000, "tokens": 1_000_000})
    assert "still to encode" not in bill_of(run)

    for draws, size in ((1, "218.8 KiB"), (32, "6.6 MiB")):
        run = planned_run(tmp_path / str(draws), encoder=DropoutEncoder(draws=draws), packing=PairPacking())
        assert make_plan([run]).tokens_bytes == 0
        store_record(run, "corpus", {"train": {"documents": 1_000, "bytes": 100_000, "target_bytes": 60_000}})
        # A byte is a token of two bytes; bounds and lengths of sources are of eight.
        assert make_plan([run]).tokens_bytes == draws * (2 * 100_000 + 2 * 8 * 1_000) + 8 * 1_000
        assert f"still to encode: ~{size} of tokens" in bill_of(run)


@pytest.mark.parametrize("corpus", [True, False])
def test_a_search_that_takes_many_core_hours_is_warned_of(tmp_path: Path, corpus: bool) -> None:
    """Counted in the corpus, or taken from the text of the budget, in documents of 6.4 kB, where there is none."""
    paper = NeighboursConfig(index="ivf_pq", lists=32_768, probes=64, code_size=256, shard_documents=50_000_000)
    for place, (neighbours, documents, warning) in enumerate((
        (paper, 235_266_464, "32,768 quantized lists of ~235.3M documents take about 9,276 core-hours"),
        (paper, 2_000_000, None),
        (NeighboursConfig(), 2_000_000, None),
        (NeighboursConfig(), 235_266_464, "core-hours"),
        (NeighboursConfig(index="flat"), 235_266_464, None),
    )):  # fmt: skip
        budget = EqualTextBudget(text=6_400 * documents)
        root, ordering = tmp_path / str(place), InContextOrdering()
        run = planned_run(root, ordering=ordering, neighbours=neighbours, budget=budget)
        if corpus:
            store_record(run, "corpus", {"train": {"documents": documents, "bytes": 6_400 * documents}})
        text = "\n".join(make_plan([run]).judgement)
        assert warning in text if warning else "core-hours" not in text, (neighbours, documents)
        store_record(run, "neighbours", {})
        assert "core-hours" not in "\n".join(make_plan([run]).judgement)


# What the table will be able to say


def arms(root: Path, seeds: int) -> list[PreparedRun]:
    """Two rows of so many seeds; the corpus and the tasks are those of all."""
    run = planned_run(root)
    return [
        with_config(replace(run, factors=("arm",), job=replace(run.job, overrides=(f"arm={arm}",))), seed=seed)
        for arm in ("bpe", "unigram")
        for seed in range(seeds)
    ]


def store_heldout(run: PreparedRun, documents: int) -> None:
    heldout = {"documents": documents, "bytes": 1_000}
    store_record(run, "corpus", {"heldout": heldout, "train": {"documents": 10, "bytes": 1_000_000}})


def test_rows_of_too_few_seeds_are_named(tmp_path: Path) -> None:
    for seeds in (1, SEEDS_TO_JUDGE - 1):
        runs = arms(tmp_path, seeds)
        plan = make_plan(runs)
        assert f"rows have {SEEDS_TO_JUDGE} seeds, and here they have {seeds}: seed=0,1,2" in plan.judgement[0]
        assert plan_document(plan, runs)["judgement"] == list(plan.judgement)
        others = [with_config(run, seed=7) for run in runs[::seeds]]
        assert make_plan(others).judgement[0].endswith("here they have 1: seed=7,8,9")
    assert make_plan(arms(tmp_path, SEEDS_TO_JUDGE)).judgement == ()


def test_a_baseline_that_no_row_has_is_named_before_anything_is_made(tmp_path: Path) -> None:
    def judgement(label: str) -> tuple[str, ...]:
        experiment = ExperimentConfig(table=replace(default_table(), baseline={"arm": label}))
        return make_plan([with_config(run, experiment=experiment) for run in arms(tmp_path, SEEDS_TO_JUDGE)]).judgement

    assert judgement("bpe") == ()
    (line,) = judgement("words")
    assert "no table of these runs alone: experiment.table.baseline: no row has arm: words; rows: bpe" in line


def test_too_few_held_out_documents_are_named_once_they_are_known(tmp_path: Path) -> None:
    few, enough = ITEMS_TO_JUDGE - 1, ITEMS_TO_JUDGE
    lines = {}
    for documents in (few, enough):
        runs = arms(tmp_path / str(documents), SEEDS_TO_JUDGE)
        assert make_plan(runs).judgement == ()
        store_heldout(runs[0], documents)
        lines[documents] = make_plan(runs).judgement
    assert lines[enough] == ()
    (line,) = lines[few]
    more = "(more with corpus.heldout or a larger corpus, which train"
    assert f"these runs score {few} held-out documents {more}" in line


# What is printed

SIZES = ("tokenizer=bpe,scaffold_bpe", "tokenizer.vocab_size=300,512", "training.learning_rate=1e-3,2e-3")


def plan_of(root: Path, *overrides: str) -> Plan:
    command = ["scale=tiny", "corpus=pydocs_small", f"root={root}", *overrides]
    return make_plan(prepare_runs(compose_command(parse(command)), tolerate_missing=True))


def test_every_run_stands_once_with_whole_words_and_numbers(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "-m", *SIZES)
    assert len(plan.runs) == 8
    for width in (80, 140):
        table = shown(plan, width).partition("Runs")[2].partition("memory: of one")[0]
        assert all(len(line) <= width for line in table.splitlines())
        words = table.split()
        for word in ("tokenizer.vocab_size=300", "training.learning_rate=0.002", "scaffold_bpe"):
            assert words.count(word) == 4
        for run in plan.runs:
            assert f"~{format_count(run.parameters)}" in words
            assert f"~{format_size(run.disk_bytes)}" in " ".join(words)
    alone = shown(plan_of(tmp_path), 80)
    assert alone.count("bpe-merge_rank-standard-seed0") == 1
    assert "bpe-merge_rank-standard-seed0: tokens 64.0K, text ~118.1 KiB, steps 125," in alone


# A job script knows by the exit status of `paribus plan` whether `paribus run` would begin.

OWN = ("scale=tiny", "corpus=files", "tracking=none", "root=root")
HERE, ABSENT = "corpus.paths=[texts.txt]", "corpus.paths=[absent/*.jsonl]"


@pytest.mark.usefixtures("beside_text")
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
