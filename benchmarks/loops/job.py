"""One measurement in a process of its own, in the environment that paribus gives a stage."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.execution import EngineConfig
from paribus.pipeline.execute import child_environment

BENCHMARKS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """What `loops.child` does: train with a contestant's loop, or measure the `peak` of the device."""

    contestant: str
    config: dict[str, Any]
    """All fields of the run's configuration."""
    directory: str
    """Where `inputs.write_inputs` wrote."""
    warmup: int = 0
    window: int = 1


def run(job: Job, limit_s: float) -> dict[str, Any]:
    """What a fresh process measured; `problem` says why there is nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        asked, answer = Path(scratch) / "job.json", Path(scratch) / "result.json"
        asked.write_text(json.dumps(asdict(job)), encoding="utf-8")
        command = [sys.executable, "-m", "loops.child", str(asked), str(answer)]
        try:
            done = subprocess.run(
                command, env=_environment(), capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"more than {limit_s:.0f} s"}
        if done.returncode or not answer.exists():
            last = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            return {"problem": last[-1]}
        measured: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return measured


def _environment() -> dict[str, str]:
    environment = child_environment(EngineConfig())
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), environment.get("PYTHONPATH")]))
    # Of several GPUs all but one are hidden: Trainer would divide its batches among them.
    visible = environment.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    return environment | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": visible}
