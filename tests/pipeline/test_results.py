"""Why a run that a command composes is not in its table."""

import json
from pathlib import Path
from typing import Any

import pytest

from paribus.checks import compose_command
from paribus.commands.status import status_document
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.results import collect
from paribus.pipeline.root import OutputRoot
from paribus.store.files import RUN_RECORD


@pytest.fixture
def run(tmp_path: Path) -> PreparedRun:
    (found,) = prepare_runs(compose_command(parse(["scale=tiny", "corpus=pydocs_small", f"root={tmp_path}"])))
    return found


def begun(run: PreparedRun) -> dict[str, Any]:
    """The record of a run that has begun, as its recorder leaves it."""
    return RunRecord(run.job.config, run.nodes, OutputRoot.of(run.job.config)).record


def reason(run: PreparedRun) -> str:
    records, (missing,) = collect([run], ["encoder"], OutputRoot.of(run.job.config))
    assert records == [] and missing.factors == {"encoder": "merge_rank"}
    return missing.reason


def test_a_run_whose_files_are_missing_is_unknown_and_names_them(tmp_path: Path) -> None:
    overrides = ["scale=tiny", "corpus=files", f"corpus.paths=[{tmp_path}/gone.txt]", f"root={tmp_path}/root"]
    (run,) = prepare_runs(compose_command(parse(overrides)), tolerate_missing=True)
    assert reason(run).startswith("seed 0: whether it has run is not known without its files: ")
    assert "gone.txt" in reason(run)
    assert not status_document([run])["done"]


def test_a_run_of_another_version_is_named_with_its_stages(run: PreparedRun) -> None:
    record = begun(run)
    now = record["code_versions"]["evaluation"]
    layout = OutputRoot.of(run.job.config)
    other = layout.run("0123456789abcdef")
    layout.run(run.run_id).rename(other)
    versions = record["code_versions"] | {"evaluation": now + 1}
    changed = record | {"status": "done", "run_id": other.name, "code_versions": versions}
    (other / RUN_RECORD).write_text(json.dumps(changed))
    assert f"run {other.name} is of another version (evaluation {now + 1}, now {now})" in reason(run)


def test_a_group_that_decided_nothing_of_a_run_is_as_the_command_has_it(run: PreparedRun) -> None:
    record = begun(run)
    identity = {name: value for name, value in record["identity"].items() if name != "finetuning"}
    layout = OutputRoot.of(run.job.config)
    path = layout.run(run.run_id) / RUN_RECORD
    path.write_text(json.dumps(record | {"status": "done", "identity": identity}), encoding="utf-8")
    (found,), missing = collect([run], ["encoder"], layout)
    assert missing == []
    assert found.config["finetuning"] == {"kind": "none"}
    assert found.config["corpus"] == identity["corpus"]
