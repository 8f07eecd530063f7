"""A run that logs as training does: `python logged_run.py ROOT RUN NUMBER STEPS GATE URI PATIENCE`.

Each step has `METRICS` metrics; half of the steps wait for the file GATE. It prints what its follower says at
the end.
"""

import dataclasses
import sys
import time
from pathlib import Path

from paribus.config.groups.execution import TrackingConfig
from paribus.tracking.events import EventLog
from paribus.tracking.sync import Follower

METRICS, PARAMETERS, TAGS = 5, 20, 3
SWEEP = "load"


def value(number: int, metric: int, step: int) -> float:
    """What metric `metric` of run `number` is at `step`; exact in binary, and no two are the same."""
    return number * 64 + metric + step / 65536


def log_run(directory: Path, number: int, steps: int, gate: Path, tracking: TrackingConfig) -> str:
    """Log everything while a follower sends it; what that says at the end."""
    run_id, root = directory.name, directory.parent.parent
    with EventLog(directory / "events.jsonl") as log:
        log.start(run_id, run_id, {"id": SWEEP}, dataclasses.asdict(tracking))
        for parameter in range(PARAMETERS):
            log.parameter(f"parameter.{parameter}", number)
        log.dataset("corpus", f"{number:064d}", "here")
        follower = Follower(directory, tracking, root)
        for step in range(steps):
            while step == steps // 2 and not gate.exists():
                time.sleep(0.05)
            for metric in range(METRICS):
                log.metric(f"metric/{metric}", value(number, metric, step), step)
        for tag in range(TAGS):
            log.tag(f"tag.{tag}", str(number))
        (directory / "config.json").write_text(f'{{"run": {number}}}', encoding="utf-8")
        log.artifact("config.json")
        log.end("FINISHED")
    return follower.finish(tracking.patience)


if __name__ == "__main__":
    root, run_id, number, steps, gate, uri, patience = sys.argv[1:]
    where = TrackingConfig(kind="mlflow", uri=uri, patience=float(patience))
    print(log_run(Path(root) / "runs" / run_id, int(number), int(steps), Path(gate), where))  # noqa: T201
