"""Sweeps under Hydra's launchers: the same result, whichever runs them, and whatever is killed."""

import io
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.commands.report import compare_runs
from paribus.config.arguments import parse
from paribus.pipeline.execute import SERVE_FORKS
from paribus.pipeline.prepare import prepare_runs
from paribus.store import files
from support.command_line import OVERRIDES, SWEEP, command, paribus
from support.waiting import wait_until

ARMS = ("-m", *OVERRIDES, "arm=bpe,scaffold_lbpe", "duplicates=embedding")
"""Two runs of the sweep that all tests read."""
LAUNCHERS = {
    "basic": (),
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "submitit_local": ("hydra/launcher=submitit_local",),
    "ray": (
        "hydra/launcher=ray",
        "+hydra.launcher.ray.init.num_cpus=2",
        "+hydra.launcher.ray.init.include_dashboard=false",
    ),
}


@pytest.fixture
def unscored(own_sweep: Path) -> Path:
    """The finished sweep without the scores of its runs, which are to be made again."""
    shutil.rmtree(own_sweep / "paribus_runs/artifacts/evaluation")
    shutil.rmtree(own_sweep / "paribus_runs/reports")
    shutil.rmtree(own_sweep / "paribus_runs/runs")
    return own_sweep


def same_scores(directory: Path, sweep: Path) -> bool:
    """True if both runs were scored as in the finished sweep."""
    before, after = scores(sweep), scores(directory)
    return len(after) == 2 and after.items() <= before.items()


def scores(directory: Path) -> dict[str, object]:
    """Key -> digests of the files of scores."""
    records = (directory / "paribus_runs/artifacts/evaluation").glob("*/record.json")
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8"))["files"] for path in records}


def scoring_job(directory: Path) -> psutil.Process | None:
    """The process of a job that is scoring, once its child is there."""
    for path in (directory / "paribus_runs/artifacts/claims").glob("evaluation-*"):
        try:
            job = psutil.Process(int(json.loads(path.read_text(encoding="utf-8"))["pid"]))
            if stage_processes(job):
                return job
        except (psutil.NoSuchProcess, FileNotFoundError):
            continue
    return None


def killed_while_scoring(
    directory: Path, *arguments: str, victim: Callable[[psutil.Process], psutil.Process]
) -> tuple[int, str]:
    """Exit status and output of a sweep in which the `victim` of a job that scores is killed, once."""
    process = start(directory, "run", *ARMS, *arguments)
    job = wait_until(lambda: scoring_job(directory), process)
    assert isinstance(job, psutil.Process)
    victim(job).kill()
    printed, _ = process.communicate(timeout=300)
    return process.returncode, printed


def stage_process(job: psutil.Process) -> psutil.Process:
    return stage_processes(job)[0]


def stage_processes(job: psutil.Process) -> list[psutil.Process]:
    """Processes that run a stage: children of the job's fork server. Its other children, such as git, are left out."""
    servers = [child for child in job.children() if SERVE_FORKS in child.cmdline()]
    return [child for server in servers for child in server.children()]


def start(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command(arguments), cwd=directory, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_sweep_has_the_same_scores_and_a_table_under_each_launcher(
    sweep: Path, unscored: Path, launcher: str
) -> None:
    if launcher == "ray":
        pytest.importorskip("ray")
    words = command(["run", *ARMS, *LAUNCHERS[launcher]])
    output = subprocess.check_output(words, cwd=unscored, text=True)
    assert same_scores(unscored, sweep)
    assert "2 of 2 runs done in" in output
    assert "Comparison by arm" in output


@pytest.mark.slow
def test_a_stage_that_is_killed_is_tried_again_and_ends_the_same(sweep: Path, unscored: Path) -> None:
    status, printed = killed_while_scoring(unscored, victim=stage_process)
    assert status == 0, printed
    assert "trying again (1 of 1): the process died without a word: SIGKILL" in printed
    assert same_scores(unscored, sweep)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [pytest.param("joblib", marks=pytest.mark.core), "submitit_local"])
def test_a_job_that_is_killed_is_launched_again_and_the_sweep_ends_the_same(
    sweep: Path, unscored: Path, launcher: str
) -> None:
    status, printed = killed_while_scoring(unscored, *LAUNCHERS[launcher], victim=lambda job: job)
    assert status == 0, printed
    assert f"launcher {launcher}: " in printed
    assert same_scores(unscored, sweep)


@pytest.mark.slow
@pytest.mark.core
def test_a_killed_sweep_is_shown_as_failed_and_the_same_command_carries_on(sweep: Path, unscored: Path) -> None:
    process = start(unscored, "run", *ARMS)
    job = wait_until(lambda: scoring_job(unscored), process)
    assert isinstance(job, psutil.Process)
    assert job.pid == process.pid
    process.kill()
    process.wait()
    status = " ".join(paribus(unscored, "status", *ARMS, expect=1).stdout.replace("│", " ").split())
    assert f"infrastructure: process {job.pid} on" in status
    assert "running" not in status
    paribus(unscored, "run", *ARMS)
    assert same_scores(unscored, sweep)


@pytest.mark.slow
def test_two_people_who_start_one_sweep_share_it(sweep: Path, unscored: Path) -> None:
    both = [start(unscored, "run", *ARMS) for _ in range(2)]
    printed = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    made = [line for text in printed for line in text.splitlines() if line.split()[:2] == ["evaluation", "done"]]
    assert len(made) == 2
    assert same_scores(unscored, sweep)
    assert all("Comparison by arm" in text for text in printed)


def test_reports_that_are_written_at_once_are_not_mixed(own_sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory,) = (own_sweep / "paribus_runs/reports").iterdir()
    (events,) = (own_sweep / "paribus_runs/sweeps").glob("*/events.jsonl")
    before = events.read_text(encoding="utf-8")
    shutil.rmtree(directory)
    composition = compose_command(parse(SWEEP))
    runs = prepare_runs(composition)
    sync_entry = files.sync_entry

    def slowly(path: Path) -> None:
        time.sleep(0.02)  # the file aside is there for so long
        sync_entry(path)

    monkeypatch.setattr(files, "sync_entry", slowly)
    with ThreadPoolExecutor(2) as pool:
        whole = [pool.submit(compare_runs, composition, runs, Console(file=io.StringIO())) for _ in range(2)]
        assert [future.result() for future in whole] == [True, True]
    assert events.read_text(encoding="utf-8") == before
