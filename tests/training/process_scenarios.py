"""Runs of the `training` stage in processes: python process_scenarios.py ROOT NAME, which SCENARIOS describes.

The launcher of processes handles signals and changes the environment, so each runs in a process of its own.
"""

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil

from paribus.config.groups.training import EqualTokensBudget, TrainingConfig
from paribus.errors import ParibusError
from paribus.training import launch
from support.training_inputs import BUDGET, MODEL, TRAINING, config, execute
from support.training_processes import members_below

PAIR = replace(TRAINING, micro_batch=2, processes=2)
ALONE = replace(TRAINING, micro_batch=2, checkpoint_every=25, keep_checkpoints=1)
LONG = replace(ALONE, processes=2)
SHARDED = replace(LONG, parallel="fsdp")
LONG_BUDGET = EqualTokensBudget(tokens=120 * TRAINING.global_batch * MODEL.context_length)
SHORT_RUNS: dict[str, TrainingConfig] = {
    "ddp": PAIR,
    "fsdp": replace(PAIR, parallel="fsdp"),
    "fsdp_compiled": replace(PAIR, processes=1, nodes=2, parallel="fsdp", compile="always"),
    "ddp_bf16": replace(PAIR, precision="bf16"),
    "fsdp_bf16": replace(PAIR, precision="bf16", parallel="fsdp"),
    "hsdp": replace(
        PAIR, global_batch=8, micro_batch=1, processes=4, parallel="fsdp", shard_processes=2,
        reshard_after_forward=False,
    ),
}  # fmt: skip
LONG_RUNS: dict[str, TrainingConfig] = {
    "alone": ALONE,
    "alone_asked": replace(ALONE, checkpoint_every=1000),
    "alone_then_sharded": ALONE,
    "long": LONG,
    "long_asked": replace(LONG, checkpoint_every=1000),
    "killed": LONG,
    "out_of_memory": LONG,
    "stuck": LONG,
    "sharded": SHARDED,
    "sharded_asked": SHARDED,
    "sharded_killed": SHARDED,
    "sharded_then_alone": SHARDED,
}
AGAIN = {"sharded_then_alone": ALONE, "alone_then_sharded": SHARDED}
"""How what was stopped goes on."""
FAULTY = ("out_of_memory", "stuck", "sharded_killed")
"""Scenarios in which a process fails as `faulty_rank.py` says."""
MEMBERS = "members.json"
"""File of the process ids of a group of which one process is killed."""


def kill_a_process_of_the_group(work: Path) -> None:
    """Kill process 1 after some steps."""
    metrics = work / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < 60:
        time.sleep(0.0005)
    members = members_below(psutil.Process())
    (work / MEMBERS).write_text(json.dumps([process.pid for process in members.values()]))
    members["1"].kill()


def main(root: Path, name: str) -> None:
    """Run a scenario; what it raises is printed. The one that is killed is so when it is run first."""
    first = not (root / name).exists()
    training = (SHORT_RUNS | LONG_RUNS)[name]
    if not first:
        training = AGAIN.get(name, training)
    if name == "killed" and first:
        threading.Thread(target=kill_a_process_of_the_group, args=[root / name / "work"], daemon=True).start()
    if name in FAULTY:
        begin, member = launch.launch_agent, str(Path(__file__).with_name("faulty_rank.py"))
        os.environ["FAULT"] = name
        launch.launch_agent = lambda config, entrypoint, arguments: begin(config, entrypoint, [member, *arguments[2:]])
    inputs = {stage: root / stage for stage in ("tokens", "order")}
    budget = BUDGET if name in SHORT_RUNS else LONG_BUDGET
    try:
        execute(root, name, inputs, config(training=training, budget=budget))
    except ParibusError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
