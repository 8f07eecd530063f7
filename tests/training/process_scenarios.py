"""Runs of the `training` stage in two processes: python process_scenarios.py ROOT NAME, which SCENARIOS describes.

The launcher of processes handles signals and changes the environment, so each runs in a process of its own.
"""

import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from paribus.config.groups.training import EqualTokensBudget
from paribus.errors import ParibusError
from paribus.training import launch
from support.forked import members_below
from support.training_inputs import BUDGET, MODEL, TRAINING, config, execute

LONG = dataclasses.replace(TRAINING, checkpoint_every=25, keep_checkpoints=1, micro_batch=2)
HALF = dataclasses.replace(TRAINING, micro_batch=2, precision="bf16")
SHARED = dataclasses.replace(LONG, parallel="fsdp")
MEMBERS_OF = {name: str(Path(__file__).with_name(f"{name}_rank.py")) for name in ("short", "stuck", "shared_killed")}
"""What the processes of a scenario are in place of the module that trains."""
SELDOM = dataclasses.replace(LONG, checkpoint_every=1000)
LONG_BUDGET = EqualTokensBudget(tokens=120 * TRAINING.global_batch * MODEL.context_length)
SCENARIOS: dict[str, tuple[Any, Any]] = {
    "ddp": (dataclasses.replace(TRAINING, processes=2, micro_batch=2), BUDGET),
    "fsdp": (dataclasses.replace(TRAINING, processes=1, nodes=2, micro_batch=2, parallel="fsdp"), BUDGET),
    "fsdp_compiled": (
        dataclasses.replace(TRAINING, processes=2, micro_batch=2, parallel="fsdp", compile="always"),
        BUDGET,
    ),
    "ddp_bf16": (dataclasses.replace(HALF, processes=2), BUDGET),
    "fsdp_bf16": (dataclasses.replace(HALF, processes=2, parallel="fsdp"), BUDGET),
    "hsdp": (
        dataclasses.replace(
            TRAINING,
            global_batch=8,
            processes=4,
            micro_batch=1,
            parallel="fsdp",
            shard_processes=2,
            reshard_after_forward=False,
        ),
        BUDGET,
    ),
    "long": (dataclasses.replace(LONG, processes=2), LONG_BUDGET),
    "alone": (LONG, LONG_BUDGET),
    "killed": (dataclasses.replace(LONG, processes=2), LONG_BUDGET),
    "short": (dataclasses.replace(LONG, processes=2), LONG_BUDGET),
    "stuck": (dataclasses.replace(LONG, processes=2), LONG_BUDGET),
    "shared": (dataclasses.replace(SHARED, processes=2), LONG_BUDGET),
    "shared_asked": (dataclasses.replace(SHARED, processes=2), LONG_BUDGET),
    "shared_killed": (dataclasses.replace(SHARED, processes=2), LONG_BUDGET),
    "shared_then_alone": (dataclasses.replace(SHARED, processes=2), LONG_BUDGET),
    "alone_then_shared": (LONG, LONG_BUDGET),
    "alone_asked": (SELDOM, LONG_BUDGET),
    "long_asked": (dataclasses.replace(SELDOM, processes=2), LONG_BUDGET),
}

MEMBERS = "members.json"
"""Of a group of which one is killed, the numbers of all processes."""
AGAIN = {"shared_then_alone": LONG, "alone_then_shared": dataclasses.replace(SHARED, processes=2)}
"""How what was stopped goes on."""


def some_steps(work: Path) -> bool:
    metrics = work / "metrics.jsonl"
    return metrics.exists() and metrics.read_bytes().count(b"\n") >= 60


KILLED = {"killed": some_steps}
"""When process 1 of the two is killed, by the files in `work`."""


def kill_a_process_of_the_group(work: Path, is_time: Callable[[Path], bool]) -> None:
    while not is_time(work):
        time.sleep(0.0005)
    members = members_below(psutil.Process())
    (work / MEMBERS).write_text(json.dumps([process.pid for process in members.values()]))
    members["1"].kill()


def main(root: Path, name: str) -> None:
    """Run a scenario; what it raises is printed. The one that is killed is so when it is run first."""
    inputs = {stage: root / stage for stage in ("tokens", "order")}
    training, budget = SCENARIOS[name]
    if (root / name).exists():
        training = AGAIN.get(name, training)
    if name in KILLED and not (root / name).exists():
        killing = (root / name / "work", KILLED[name])
        threading.Thread(target=kill_a_process_of_the_group, args=killing, daemon=True).start()
    if name in MEMBERS_OF:
        begin, member = launch.launch_agent, MEMBERS_OF[name]
        launch.launch_agent = lambda config, entrypoint, arguments: begin(config, entrypoint, [member, *arguments[2:]])
    try:
        execute(root, name, inputs, config(training=training, budget=budget))
    except ParibusError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
