"""Names of measures, columns and tasks, and the named sets of tasks below conf/evaluation."""

import re
from pathlib import Path

import pytest
import yaml

from paribus.checks import WHOLE, check_primary, compose_command
from paribus.config.arguments import configuration_directory, parse
from paribus.errors import ConfigurationError
from paribus.evaluation.benchmarks import unknown_task
from paribus.evaluation.data_files import HELDOUT_CLEAN, HELDOUT_CONCATENATED
from paribus.pipeline.prepare import prepare
from paribus.reporting.measures import AVERAGE, BITS_PER_BYTE, HELDOUT_SETS

SWEEP = ("-m", "scale=tiny", "corpus=pydocs_small", "encoder=merge_rank,longest_first")
TASKS = "evaluation.tasks=[continuation,squad]"
TEXTS = "evaluation.texts=[wikipedia]"


def problems(*overrides: str) -> list[tuple[str, str]]:
    composition = compose_command(parse([*SWEEP, *overrides]))
    return list(check_primary([job.config for job in composition.jobs]))


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("+experiment.table.bold=none",),
        (TASKS, "+experiment.table.primary=[bits_per_byte,average]"),
        (
            TASKS,
            "evaluation.shots=[0,5]",
            "+experiment.table.primary=[continuation,'squad:f1','squad:f1/5_shot',continuation/0_shot]",
        ),
        (TEXTS, "+experiment.table.primary=[wikipedia,heldout_clean,heldout_concatenated]"),
        ("+experiment.table.groups={Mine:[continuation]}", "+experiment.table.primary=[Mine]"),
        ("finetuning=scrolls", "finetuning.answer_characters=32", "+experiment.table.primary=[qmsum]"),
        ("evaluation.tasks=[boolq],[piqa]", "+experiment.table.primary=[piqa]"),
        ("+experiment.table.columns=[boolq,tokens,average]", "+experiment.table.primary=[boolq/5_shot,average]"),
    ],
)
def test_what_a_run_of_the_sweep_may_have_is_accepted(overrides: tuple[str, ...]) -> None:
    assert problems(*overrides) == []


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (("primary=[bits_per_byt]",), "'bits_per_byt' is unknown; did you mean 'bits_per_byte'?"),
        (("primary=[average]",), "'average' is unknown; known: bits_per_byte, continuation, "),
        (("groups={Mine:[boolq]}", "primary=[Mine]"), "'Mine' is unknown; "),
        (("primary=[continuation/7_shot]",), "no run is scored with so many examples; evaluation.shots says"),
        (("primary=[wikipedia]",), "'wikipedia' is unknown; "),
        (("columns=[boolq,tokens]", "primary=[bits_per_byte]"), "is no column of the table; add it to"),
    ],
)
def test_what_no_run_can_have_is_refused_by_its_path(overrides: tuple[str, ...], told: str) -> None:
    ((path, message),) = problems(*(f"+experiment.table.{override}" for override in overrides))
    assert told in message
    assert re.fullmatch(r"experiment\.table\.primary\[[01]\]", path)


def test_it_is_refused_before_anything_runs_and_in_a_plan(tmp_path: Path) -> None:
    command = parse([*SWEEP, f"root={tmp_path}", "+experiment.table.primary=[bits_per_byt]"])
    for tolerate in (False, True):
        with pytest.raises(ConfigurationError, match=r"experiment\.table\.primary\[0\]: 'bits_per_byt' is unknown"):
            prepare(compose_command(command), tolerate_missing=tolerate)


def refusal(root: Path, field: str, *overrides: str) -> str:
    try:
        prepare(compose_command(parse([*SWEEP, f"root={root}", f"+experiment.table.{field}", *overrides])))
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("columns=[bits_per_byte,flop]", "columns[1]: 'flop' is unknown; did you mean 'flops'?"),
        ("columns=[boolqq/5_shot]", "columns[0]: 'boolqq/5_shot' is unknown; did you mean 'boolq'?"),
        ("groups={reading:[race_hihg]}", "groups.reading[0]: 'race_hihg' is unknown; did you mean 'race_high'?"),
        ("rows=[encodr]", "rows: factor 'encodr' is unknown; did you mean 'encoder'?"),
        ("primary=[bits_per_byte],[continuation]", ": runs of one command are in one table, and these name several"),
    ],
)
def test_a_table_that_the_sweep_cannot_have_is_refused_by_its_path(field: str, told: str, tmp_path: Path) -> None:
    assert f"experiment.table.{told}" in refusal(tmp_path, field).replace("table: runs", "table.: runs")


def test_columns_that_no_run_has_stay_where_they_are_tasks_or_like_no_other(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("task: boolqs\ndataset_path: mine\n", encoding="utf-8")
    columns = "columns=['squad:f1/5_shot',heldout_clean,Mine,xcopa_et,openbookqa_bn,of_my_own,boolqs]"
    own = (f"evaluation.include_path={tmp_path}", "+experiment.table.groups={Mine:[race_high,squad]}")
    assert refusal(tmp_path, columns, *own) == ""
    assert "'boolqs' is unknown; did you mean 'boolq'?" in refusal(tmp_path, columns, own[1])


def test_the_names_are_those_of_the_table() -> None:
    assert (BITS_PER_BYTE.key, AVERAGE) == WHOLE
    assert set(HELDOUT_SETS) == {HELDOUT_CLEAN, HELDOUT_CONCATENATED}


SETS = sorted((configuration_directory() / "evaluation").glob("*.yaml"))


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_a_named_set_names_tasks_that_there_are_and_shots_of_its_own_tasks(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    tasks = content["tasks"]
    assert [problem for name in tasks if (problem := unknown_task(name))] == []
    assert len(set(tasks)) == len(tasks)
    assert set(content.get("shots_of") or {}) <= set(tasks)


def test_the_papers_sets_are_those_of_the_papers() -> None:
    content = {path.stem: yaml.safe_load(path.read_text()) for path in SETS}
    assert len(content["papers"]["tasks"]) == 7 + 2
    shots = content["in_context"]["shots_of"]
    assert sorted(number for (number,) in shots.values()) == [2] * 6 + [32] * 7
    assert content["in_context"]["shots"] == [0]
    assert content["in_context"]["texts"] == ["wikipedia", "arxiv", "books"]


def test_the_tasks_of_in_context_pretraining_can_be_had_without_its_texts(tmp_path: Path) -> None:
    def texts(*overrides: str) -> tuple[str, ...]:
        command = parse(("evaluation=in_context", f"evaluation.data={tmp_path}", *overrides))
        return compose_command(command).jobs[0].config.evaluation.texts

    assert texts() == ("wikipedia", "arxiv", "books")
    assert texts("evaluation.texts=[]") == ()
