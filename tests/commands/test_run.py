"""`paribus run`: a sweep of real commands, what it says before and after its runs, and how it stops."""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import main
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare_runs
from paribus.planning.plan import make_plan
from support.command_line import OVERRIDES, SWEEP, command, write_text_files
from support.finished_runs import finish

ARTIFACTS = Path("paribus_runs/artifacts")


def published(directory: Path) -> Counter[str]:
    """Number of published artefacts by stage."""
    return Counter(path.parent.parent.name for path in (directory / ARTIFACTS).glob("*/*/record.json"))


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_sweep_makes_exactly_what_the_plan_of_a_fresh_root_names_and_shared_artefacts_once(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_each = {"vocabulary": 2, "tokens": 2, "prompts": 2, "order": 2}
    by_run = {"contexts": 4, "training": 4, "evaluation": 4}
    shared = dict.fromkeys(("corpus", "embeddings", "neighbours", "duplicates", "tasks"), 1)
    assert published(sweep) == shared | two_each | by_run
    monkeypatch.chdir(sweep)
    plan = make_plan(prepare_runs(compose_command(parse([*SWEEP, f"root={tmp_path}"]))))
    assert {stage.state for stage in plan.stages} == {"missing"}
    artifacts = [path.parent for path in ARTIFACTS.glob("*/*/record.json")]
    assert sorted((stage.name, stage.key) for stage in plan.stages) == sorted(
        (path.parent.name, path.name) for path in artifacts
    )


def test_the_same_command_again_makes_nothing(own_sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in ARTIFACTS.rglob("record.json")}
    assert main(["run", *SWEEP]) == 0
    printed = capsys.readouterr().out
    assert "4 of 4 runs done already" in printed and " done in " not in printed
    assert "bits / byte" in one_line(printed)
    assert before == {path: path.stat().st_mtime_ns for path in ARTIFACTS.rglob("record.json")}
    assert main(["plan", *SWEEP]) == 0
    assert "missing" not in capsys.readouterr().out
    assert main(["plan", *SWEEP, "seed=0,5"]) == 0
    lines = {
        line.split()[0]: line
        for line in capsys.readouterr().out.partition("every run:")[0].splitlines()
        if line.split()
    }
    assert "2 cached" in lines["vocabulary"] and "4 cached, 4 missing" in lines["training"]


def test_a_sweep_whose_table_would_be_refused_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", *OVERRIDES, "ordering=standard,in_context"]) == 2
    assert 'duplicates.kind: "off" in standard; "minhash" in in_context' in capsys.readouterr().err
    assert published(tmp_path) == {}


def test_a_run_that_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    characters = ("-m", *OVERRIDES, "tokenizer.unit=character", "tokenizer.vocab_size=50,700", "until=tokens")
    assert main(["run", *characters]) == 1
    printed = capsys.readouterr().out
    assert "1 of 2 runs done" in printed and "tokenizer.vocab_size" in printed
    assert main(["status", *characters]) == 1
    assert "configuration" in capsys.readouterr().out


def test_a_stage_that_is_unknown_or_not_of_the_run_is_refused(
    sweep: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sweep)
    refusals = {
        ("until=contxts",): "until: 'contxts' is unknown; did you mean 'contexts'?",
        ("until=neighbours",): "has no stage neighbours, only corpus, tasks, vocabulary",
        ("-m", "until=corpus,tokens"): "until=corpus and until=tokens make the same run",
    }
    for words, message in refusals.items():
        assert main(["run", *OVERRIDES, *words]) == 2
        assert message in one_line(capsys.readouterr().err), words


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_ctrl_c_or_a_closed_terminal_stops_the_sweep_and_leaves_no_half_artefact(
    tmp_path: Path, number: signal.Signals
) -> None:
    write_text_files(tmp_path)
    # A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C; nohup, a hang-up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    process = subprocess.Popen(
        command(("run", *SWEEP)), cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "tokens: start" in line:
            break
    os.kill(process.pid, number)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "same command again" in printed
    (record,) = (tmp_path / "paribus_runs/runs").glob("*/run.json")
    assert json.loads(record.read_text(encoding="utf-8"))["status"] == "interrupted"
    for directory in (tmp_path / ARTIFACTS).glob("*/*/"):
        assert directory.parent.name in ("claims", "partial") or (directory / "record.json").is_file()


def test_run_warns_once_before_training_of_too_few_seeds_or_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = []
    for seed in ("seed=0", "seed=1"):
        assert main(["run", "-m", *OVERRIDES, "corpus.heldout=0.05", "tokenizer=bpe,bytes", "until=corpus", seed]) == 0
        printed.append(one_line(capsys.readouterr().out))
    few = r"these runs score \d+ held-out documents \(more with corpus\.heldout or a larger corpus, which train"
    assert re.search(rf"here they have 1: seed=0,1,2 run 1 of 2 .* corpus done .* {few}.* run 2 of 2", printed[0])
    assert re.search(rf"{few} all anew\) run 1 of 2", printed[1])
    assert [len(re.findall(few, text)) for text in printed] == [1, 1]


def test_run_warns_of_seeds_added_after_a_report_of_three_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_plots: None
) -> None:
    arms = ["scale=tiny", "corpus=pydocs_small", "tokenizer=bpe", "encoder=merge_rank,longest_first", "tracking=none"]
    arms += [f"root={tmp_path / 'root'}"]
    for number, run in enumerate(prepare_runs(compose_command(parse(["-m", *arms, "seed=0,1,2,3"])))):
        finish(run, number, tmp_path / "made")
    printed = []
    for seeds in ("0,1", "0,1,2", "0,1,2,3", "0,1,2"):
        assert main(["run", "-m", *arms, f"seed={seeds}"]) == 0
        printed.append(one_line(capsys.readouterr().out))
    warning = "Warning: an earlier report judged fewer seeds of these trainings: "
    assert [warning in text for text in printed] == [False, False, True, False]
    assert (
        f"{warning}encoder " in printed[2] and "(3 seeds). If seeds were added because of what it showed" in printed[2]
    )
