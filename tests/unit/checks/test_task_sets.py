"""The named sets of tasks below conf/evaluation."""

from pathlib import Path

import pytest
import yaml

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.config.reference.files import configuration_directory
from paribus.evaluation.suites.registry import unknown_task

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
