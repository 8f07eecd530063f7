"""The experiment files: every command of their headers can be planned, and scores checkpoints that will be there."""

import re
from pathlib import Path

import pytest

from paribus.commands.token_rows import refuse_absent_baseline
from paribus.config.groups.evaluation import table_of
from paribus.config.groups.training import checkpoint_steps
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun, undeclared
from paribus.planning.plan import Plan, make_plan
from paribus.reporting.columns import columns_of
from support.experiments import (
    ACTIONS,
    DIRECTORY,
    FILES,
    composition_of,
    header_commands,
    name_of,
    overrides_of,
    words_of,
)

COMMANDS = [
    pytest.param(line, id=f"{name_of(path)}-{number}", marks=pytest.mark.slow if number else ())
    for path in FILES
    for number, line in enumerate(header_commands(path))
]
LAST_FIVE = {0.8, 0.85, 0.9, 0.95, 1.0}
"""Shares of a training after which the checkpoints stand that LBPE and Scaffold-BPE average over."""


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands are given, without anything made before."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared(*overrides: str, verb: str = "run") -> list[PreparedRun]:
    return prepare_runs(composition_of(*overrides, verb=verb), tolerate_missing=True)


def plan_of(*overrides: str) -> Plan:
    return make_plan(prepared(*overrides))


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_a_header_is_planned_with_as_many_checkpoints_as_it_scores(line: str, tmp_path: Path) -> None:
    verb, *_ = words = words_of(line)
    overrides = overrides_of(words)
    if verb in ACTIONS:
        composition = composition_of(*overrides, verb=verb)
        for job in composition.jobs:
            assert build_graph(job.config, tmp_path, tolerate_missing=True, targets=("token_statistics",))
        assert len(composition.jobs) == 1 or (words[1] != "entropy" and "--containing" not in words)
        refuse_absent_baseline(composition.jobs, composition.factors, table_of(composition.jobs[0].config.experiment))
        return
    runs = prepared(*overrides, verb=verb)
    assert undeclared(runs) is None
    plan = make_plan(runs)
    assert plan.trainings
    assert [run.too_few for run in plan.runs if run.too_few] == []


def continuations(path: Path) -> list[tuple[str, str]]:
    """Commands of a header that go on from a run, each after the command that makes this run."""
    pairs, made = [], None
    for line in header_commands(path):
        if " start.run=" not in line:
            made = line
        elif made is not None:
            pairs.append((made, line))
    return pairs


CONTINUATIONS = [
    pytest.param(*pair, id=f"{name_of(path)}-{number}")
    for path in FILES
    for number, pair in enumerate(continuations(path))
]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), CONTINUATIONS)
def test_a_run_that_a_header_continues_has_the_vocabulary_and_model_of_the_rest(first: str, second: str) -> None:
    (start,) = prepared(*overrides_of(words_of(first)))
    for run in prepared(*overrides_of(words_of(second))):
        assert run.nodes["vocabulary"].identity == start.nodes["vocabulary"].identity
        assert run.job.config.model == start.job.config.model


@pytest.mark.slow
def test_the_model_that_lbpe_goes_on_from_is_that_of_bpe_in_its_first_table() -> None:
    for first, _ in continuations(DIRECTORY / "lbpe" / "table_3.yaml"):
        (start,) = prepared(*overrides_of(words_of(first)))
        corpus = [override for override in overrides_of(words_of(first)) if re.match("scale|corpus", override)]
        table = prepared("experiment=lbpe/table_1", "evaluation.data=DIR", *corpus)
        assert start.nodes["training"].key in {run.nodes["training"].key for run in table}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lbpe", "scaffold_bpe"])
@pytest.mark.parametrize("scale", ["paper", "paper_1.2b", "paper_6.7b"])
def test_the_last_five_checkpoints_of_the_papers_stand_near_the_end_at_every_size(name: str, scale: str) -> None:
    for job in composition_of(f"experiment={name}/table_1", f"scale={scale}").jobs:
        training, evaluation = job.config.training, job.config.evaluation
        steps = 100_000
        scored = checkpoint_steps(training.checkpoints, steps, evaluation.last_checkpoints)
        assert {step / steps for step in scored} == LAST_FIVE
        assert training.keep_checkpoints >= 5


@pytest.mark.parametrize(("size", "parameters"), [("0.3b", 0.3e9), ("0.7b", 0.7e9), ("1.5b", 1.5e9), ("7b", 7e9)])
def test_the_scales_of_in_context_pretraining_have_its_batch_context_and_tokens(size: str, parameters: float) -> None:
    (run,) = plan_of(f"scale=in_context_{size}").runs
    config = composition_of(f"scale=in_context_{size}").jobs[0].config
    assert config.training.global_batch * config.model.context_length == 4 * 2**20
    assert config.model.context_length == 8192
    assert run.length.tokens == pytest.approx(300e9, rel=1e-4)
    assert run.parameters == pytest.approx(parameters, rel=0.1)


@pytest.mark.parametrize("name", ["lbpe/table_1", "lbpe/table_5", "scaffold_bpe/table_1", "scaffold_bpe/table_4"])
def test_hellaswag_and_openbookqa_are_reported_as_the_papers_levels_must_be(name: str) -> None:
    table = table_of(prepared(f"experiment={name}")[0].job.config.experiment)
    columns = columns_of([], [], table)
    reported = {part.task: part.metric for column in columns for part in column.parts}
    assert {task for task, metric in reported.items() if metric == "acc_norm"} == {"hellaswag", "openbookqa"}
    assert reported["piqa"] == "acc"


@pytest.mark.slow
def test_every_vocabulary_of_lbpe_and_scaffold_bpe_is_of_characters() -> None:
    """LBPE's paper says so of its own; Scaffold-BPE's, of the same models and text, does not say."""
    names = [name_of(path) for path in FILES if path.parent.name in ("lbpe", "scaffold_bpe")]
    units = {
        (name, getattr(job.config.tokenizer, "unit", None))
        for name in (*names, "findings/translation")
        for job in composition_of(f"experiment={name}").jobs
    }
    assert {name for name, unit in units if unit != "character"} == set()


@pytest.mark.slow
def test_trainings_of_the_tables_and_figures_of_one_size_are_shared() -> None:
    """A curve over checkpoints takes no training of its own."""
    overrides = ("scale=in_context_7b", "budget=tokens_300b", "corpus.sample=null", "evaluation.data=DIR")
    names = ("table_1", "table_5", "figure_3", "figure_4", "figure_6")
    keys = {
        run.training.key for name in names for run in plan_of(f"experiment=in_context/{name}", *overrides).trainings
    }
    assert len(keys) == 3


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_experiment_compares_what_is_equal_otherwise(path: Path) -> None:
    assert undeclared(prepared(f"experiment={name_of(path)}")) is None


def test_every_file_of_a_paper_stands_in_the_list_of_them_and_no_other() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    listed = [*re.findall(r"^\| [^|]+ \| `(\w+/\w+)` \|", page, re.MULTILINE), "course/methods"]
    files = [name_of(path) for path in FILES if name_of(path) != "demo"]
    assert sorted(listed) == sorted(name for name in files if not name.startswith("findings/"))
    assert set(re.findall(r"`(findings/\w+)`", page)) <= set(files)
