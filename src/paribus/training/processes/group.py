"""What the processes of a stage share: the job they read, and what they tell whoever started them."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from paribus.config.identity import everything
from paribus.config.validate import build_run
from paribus.engine.local import open_engine
from paribus.errors import classify, is_full_disk
from paribus.stage import Reporter, StageContext
from paribus.store.files import write_json
from paribus.store.provenance import loaded_code
from paribus.training.processes.processes import Processes

AGENT = "PARIBUS_AGENT"
"""The variable that tells a process the number of the one that started it."""
JOB, RESULT, REPORTS = "job.json", "result.json", "reports.jsonl"
SECONDS_BETWEEN_LOOKS = 0.2


def write_job(directory: Path, context: StageContext, processes: Processes, **rendezvous: str) -> None:
    """Write the job that every process of the group reads."""
    job = {
        "code": loaded_code().to_json(),
        "config": everything(context.config),
        "inputs": {name: str(path) for name, path in context.inputs.items()},
        "output": str(context.output),
        "work": str(context.work),
        "processes_a_node": processes.a_node,
        "nodes": processes.nodes,
        **rendezvous,
    }
    write_json(directory / JOB, job)


def read_job(directory: Path) -> dict[str, Any]:
    """The job of a group."""
    job: dict[str, Any] = json.loads((directory / JOB).read_text(encoding="utf-8"))
    return job


def stage_context(job: dict[str, Any], report: Reporter) -> StageContext:
    """The context of the stage that the group carries out."""
    config = build_run(job["config"])
    return StageContext(
        config=config,
        inputs={name: Path(path) for name, path in job["inputs"].items()},
        output=Path(job["output"]),
        work=Path(job["work"]),
        report=report,
        engine=open_engine(config.engine, Path(job["work"])),
    )


def main_program(module: str) -> str:
    """Program for `python -c` that calls `main` of a module, which by `python -m` would exist twice."""
    return f"from {module} import main; raise SystemExit(main())"


def report_failure(directory: Path, who: str, error: BaseException) -> None:
    """Write what went wrong in `who`, a process or an agent, for the one that started the group."""
    failure = classify(error)
    message = f"{failure['message']} ({who})"
    name = f"failed_{who.replace(' ', '_')}.json"
    fields = {"time": time.time(), "class": failure["class"], "message": message, "full_disk": is_full_disk(error)}
    write_json(directory / name, fields)


def read_failures(directory: Path) -> list[dict[str, Any]]:
    """The failures of a group in order of time, those that say more than that a machine or a peer failed first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("failed_*.json")]
    return sorted(found, key=lambda failure: (failure["class"] == "infrastructure", failure["time"]))


class FileReporter:
    """A reporter whose messages are lines of a file, which `forwarded` reads; progress at most five times a second."""

    def __init__(self, path: Path) -> None:
        self._file, self._last = path.open("a", encoding="utf-8"), 0.0

    def progress(self, done: float, total: float, **said: str) -> None:
        """Write progress unless the last one was a moment ago and this is not the end."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LOOKS or done >= total:
            self._last = now
            self._write({"progress": {"done": done, "total": total, **said}})

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Write a number of the run; JSON has no NaN, so it travels as text."""
        self._write({"metric": [name, repr(float(value)), step]})

    def message(self, text: str) -> None:
        """Write a line for the terminal."""
        self._write({"message": text})

    def _write(self, message: dict[str, Any]) -> None:
        self._file.write(json.dumps(message) + "\n")
        self._file.flush()


@contextmanager
def forwarded(path: Path, report: Reporter) -> Iterator[None]:
    """Tell `report`, from a thread, what a `FileReporter` writes to `path`, to its end when the block is left."""
    path.touch()
    ended = Event()
    thread = Thread(target=_follow, args=(path, report, ended), name="reports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(path: Path, report: Reporter, ended: Event) -> None:
    with path.open(encoding="utf-8") as lines:
        pending, last = "", False
        while not last:
            last = ended.wait(SECONDS_BETWEEN_LOOKS)
            *whole, pending = (pending + lines.read()).split("\n")
            for line in whole:
                _tell(json.loads(line), report)


def _tell(message: dict[str, Any], report: Reporter) -> None:
    if "progress" in message:
        report.progress(**message["progress"])
    elif "message" in message:
        report.message(message["message"])
    else:
        name, value, step = message["metric"]
        report.metric(name, float(value), step=step)
