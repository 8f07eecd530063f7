"""Commands with `evaluation.source=hub`, without any network, where the scored file is there and examples are not."""

import json
from pathlib import Path

import pytest

from support.benchmark_records import RECORDS
from support.command_line import paribus, write_corpus

RUN = (
    "scale=tiny",
    "corpus=files",
    "corpus.paths=[texts/*.jsonl]",
    "corpus.near_duplicate=null",
    "evaluation.tasks=[boolq]",
    "evaluation.data=benchmarks",
    "until=tasks",
    "tracking=none",
)


def test_a_run_without_network_goes_on_without_the_training_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    write_corpus(tmp_path)
    scored = tmp_path / "benchmarks" / "boolq" / "validation.jsonl"
    scored.parent.mkdir(parents=True)
    records = (RECORDS["boolq"] | {"question": f"is water {number} times wet"} for number in range(40))
    scored.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

    def run(*more: str) -> str:
        done = paribus(tmp_path, "run", *RUN, "evaluation.source=hub", *more, forked=False)
        assert [path.name for path in scored.parent.iterdir()] == ["validation.jsonl"]
        return done.stdout

    without = run("evaluation.shots=[0]")
    assert "1 of 1 run done" in without and "cannot be fetched" not in without
    sweep = run("-m", "seed=1,2", "evaluation.shots=[0,2]")
    assert "2 of 2 runs done" in sweep
    (told,) = [line for line in sweep.splitlines() if "cannot be fetched" in line]
    assert told.startswith("evaluation.data: benchmarks/boolq/train.jsonl is not there")
    assert "so examples of task boolq are split off its scored file" in told
    again = run("-m", "seed=1,2", "evaluation.shots=[0,2]")
    assert "2 of 2 runs done up to tasks already" in again and "cannot be fetched" not in again
