"""`paribus run`: a sweep of real commands, what it says before and after its runs, and how it stops."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.cli import main
from paribus.commands import run as run_verb
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.root import OutputRoot
from paribus.planning.plan import make_plan
from paribus.store.artifacts import read_record, write_record
from support.command_line import OVERRIDES, SWEEP, command, paribus, write_corpus
from support.finished_runs import finish
from support.recorded_sweeps import OVERRIDES as RECORDED
from support.recorded_sweeps import finished_sweep

ARTIFACTS = Path("paribus_runs/artifacts")


def published(directory: Path) -> Counter[str]:
    """Number of published artefacts by stage."""
    return Counter(path.parent.parent.name for path in (directory / ARTIFACTS).glob("*/*/record.json"))


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_sweep_makes_exactly_what_the_plan_of_a_fresh_root_names_and_shared_artefacts_once(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_tokenizer = {"vocabulary": 2, "tokens": 2, "prompts": 2, "order": 2}
    by_run = {"contexts": 4, "training": 4, "evaluation": 4}
    shared = dict.fromkeys(("corpus", "embeddings", "neighbours", "duplicates", "tasks"), 1)
    assert published(sweep) == shared | by_tokenizer | by_run
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
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", *OVERRIDES, "ordering=standard,in_context"]) == 2
    assert 'duplicates.kind: "off" in standard; "minhash" in in_context' in capsys.readouterr().err
    assert published(tmp_path) == {}


def test_a_run_that_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    characters = ("-m", *OVERRIDES, "tokenizer.unit=character", "tokenizer.vocab_size=50,700", "until=tokens")
    assert main(["run", *characters]) == 1
    printed = capsys.readouterr().out
    assert "1 of 2 runs done" in printed and "tokenizer.vocab_size" in printed
    assert main(["status", *characters]) == 1
    assert "configuration" in capsys.readouterr().out


def test_a_sweep_stops_after_a_stage_and_another_command_makes_the_rest(own_sweep: Path) -> None:
    arms = ("-m", *OVERRIDES, "encoder=merge_rank,longest_first", "budget.tokens=4K")

    def run(*words: str, expect: int = 0) -> str:
        done = paribus(own_sweep, *words, expect=expect)
        return one_line(done.stdout + done.stderr)

    def records() -> set[tuple[str, str | None]]:
        paths = (own_sweep / "paribus_runs/runs").glob("*/run.json")
        found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        return {(each["status"], each["until"]) for each in found if each["config"]["budget"]["tokens"] == 4_000}

    printed = run("run", *arms, "until=contexts", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert "2 of 2 runs done up to contexts in" in printed
    assert re.search(r"2 of 2 stopped early, without [a-z, ]*training[a-z, ]*; the rest is made by", printed), printed
    assert "until=contexts" not in printed.partition("the rest is made by")[2]
    assert records() == {("stopped", "contexts")}
    assert "2 of 2 runs done up to contexts already" in run("run", *arms, "until=contexts")
    assert "stopped after" in run("status", *arms, expect=1)
    assert "stopped after contexts" in run("report", *arms, expect=2)
    assert "Comparison by encoder" in run("run", *arms)
    assert records() == {("done", None)}


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
    write_corpus(tmp_path)
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


def test_the_smallest_scale_has_enough_documents_and_room_for_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny = ("scale=tiny", "tracking=none")
    assert main(["run", "-m", "tokenizer=bpe,bytes", *tiny, "until=prompts"]) == 0
    assert "lose their beginning" not in capsys.readouterr().out
    prompts = [json.loads(path.read_text(encoding="utf-8")) for path in ARTIFACTS.glob("prompts/*/prompts.json")]
    tasks = [each["tasks"]["continuation"] for each in prompts]
    assert len(tasks) == 2 and all(task["items"] > 0 and task["long_prompts"] == {"0": 0} for task in tasks)
    assert main(["plan", "--json", "-m", "tokenizer=bpe,scaffold_bpe", "seed=0,1,2", *tiny, "until=tasks"]) == 0
    assert json.loads(capsys.readouterr().out)["judgement"] == []


def test_a_run_says_once_before_it_trains_what_its_table_could_not_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = []
    for seed in ("seed=0", "seed=1"):
        assert main(["run", "-m", *OVERRIDES, "corpus.heldout=0.05", "tokenizer=bpe,bytes", "until=corpus", seed]) == 0
        printed.append(one_line(capsys.readouterr().out))
    few = r"these runs score \d+ held-out documents \(more with corpus\.heldout or a larger corpus, which train"
    assert re.search(rf"here they have 1: seed=0,1,2 run 1 of 2 .* corpus done .* {few}.* run 2 of 2", printed[0])
    assert re.search(rf"{few} all anew\) run 1 of 2", printed[1])
    assert [len(re.findall(few, text)) for text in printed] == [1, 1]


class BegunError(Exception):
    """The first run would begin now."""


def test_a_run_says_that_no_row_is_the_baseline_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: object) -> bool:
        raise BegunError

    monkeypatch.setattr(run_verb._Launches, "carry_out", begin)
    words = ["-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "tokenizer=bpe,bytes", f"root={tmp_path}"]
    for label, warned in (("unigram", True), ("bpe", False)):
        console = Console(file=io.StringIO(), width=200)
        with pytest.raises(BegunError):
            run_verb.run_command(parse([*words, f"+experiment.table.baseline={{tokenizer:{label}}}"]), console)
        printed = console.file.getvalue()  # type: ignore[attr-defined]
        assert ("no table of these runs alone: experiment.table.baseline: no row has" in printed) == warned


def test_seeds_that_are_added_after_a_report_are_named_and_those_of_two_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: None
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


@pytest.mark.usefixtures("undrawn", "beside_text")
def test_a_single_run_ends_with_its_scores_and_the_command_of_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = finished_sweep(tmp_path / "made", "tokenizer=bpe", "seed=3")
    node = run.nodes["evaluation"]
    path = OutputRoot.of(run.job.config).store.path(node.name, node.key)
    content = read_record(path)  # tests write scores as files alone
    content["result"]["metrics"] = {"eval/bits_per_byte": 0.77666, "eval/boolq/0shot/acc": 0.5}
    write_record(path, content)
    assert main(["run", *RECORDED, "tokenizer=bpe", "seed=3"]) == 0
    *_, scores, _, report = capsys.readouterr().out.splitlines()
    assert scores == "0.7767 bits per byte · boolq 0.5"
    assert shlex.split(report) == ["paribus", "report", *RECORDED, "tokenizer=bpe", "seed=3"]
    assert main(["run", *RECORDED, "tokenizer=bpe", "seed=3", "until=training"]) == 0
    assert "its report" not in capsys.readouterr().out
