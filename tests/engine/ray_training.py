"""A training on two nodes of Ray, which is stopped, loses a node, and comes to its end: `python ray_training.py ROOT`.

A process of its own, because Ray is of a whole process. What each was ended by, after how many steps, goes to
ROOT/ended.json; what the last made is in ROOT/ray. In ROOT/straight is that of two processes without Ray.
"""

import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray_nodes import when

from paribus.config.groups.training import EqualTokensBudget
from paribus.errors import ParibusError
from support.training_inputs import MODEL, TRAINING, config, execute

NAME, STRAIGHT = "ray", "straight"
STEPS = 400
"""More than the other node takes alone in the seconds until Ray ends the processes of a lost one."""
BUDGET = EqualTokensBudget(tokens=STEPS * TRAINING.global_batch * MODEL.context_length)
LONG = dataclasses.replace(TRAINING, checkpoint_every=25, keep_checkpoints=1, micro_batch=2)


def steps(work: Path) -> int:
    """Steps that were taken so far."""
    metrics = work / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


def execute_here(root: Path, name: str, **processes: Any) -> None:
    inputs = {stage: root / stage for stage in ("tokens", "order")}
    execute(root, name, inputs, config(training=dataclasses.replace(LONG, **processes), budget=BUDGET))


def train(root: Path) -> str:
    """Train on both nodes; what that was ended by, empty for its own end."""
    try:
        execute_here(root, NAME, processes=1, nodes=2, nodes_by="ray")
    except ParibusError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def broken_off(root: Path, condition: Callable[[], bool], action: Callable[[], object]) -> tuple[str, int]:
    """Train until `action`, which is done as soon as a condition holds; what ended it, and its steps then."""
    thread = when(condition, action)
    ended = train(root), steps(root / NAME / "work")
    thread.join()
    return ended


def main(root: Path) -> None:
    """Two nodes, the first with this process; the other is killed, and another takes its place."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    os.environ["RAY_ADDRESS"] = cluster.address
    work = root / NAME / "work"

    def stop() -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    def kill() -> None:
        cluster.remove_node(node, allow_graceful=False)

    try:
        stopped = broken_off(root, lambda: any(work.glob("group/logs/*")), stop)
        lost = broken_off(root, lambda: steps(work) >= STEPS // 2, kill)
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        (root / "ended.json").write_text(json.dumps([stopped, lost, (train(root), steps(work))]))
    finally:
        ray.shutdown()
        cluster.shutdown()
    execute_here(root, STRAIGHT, processes=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
