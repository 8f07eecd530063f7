"""Maps on two nodes of which one is killed meanwhile: `python ray_nodes.py DIRECTORY`.

A process of its own, because Ray is of a whole process. It writes what came of it to DIRECTORY/result.json, and the
artefact of a stage to DIRECTORY/output.
"""

import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.config.groups.execution import RayEngineConfig
from paribus.config.groups.ordering import TfidfEmbedder
from paribus.engine import Engine
from paribus.engine.local import open_engine
from paribus.ordering import embeddings as embeddings_stage
from paribus.stage import StageContext
from support.corpora import SMALL_PARTS, write_corpus
from support.engine_functions import Task, slow_square
from support.run_config import run_config
from support.stages import context_at

SHARDS = 24


def when(condition: Callable[[], bool], action: Callable[[], Any]) -> threading.Thread:
    """Do something as soon as a condition holds."""

    def wait() -> None:
        while not condition():
            time.sleep(0.05)
        action()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def run_map(directory: Path, engine: Engine, kill: Callable[[], Any]) -> dict[str, Any]:
    """Squares, with a node killed when a third of them were begun."""
    marks = directory / "marks"
    marks.mkdir()
    some = [Task(marks, number) for number in range(SHARDS)]
    thread = when(lambda: len(list(marks.iterdir())) >= SHARDS // 3, kill)
    results = list(engine.map(slow_square, some))
    thread.join()
    return {"results": results, "executions": [task.executions() for task in some]}


def embeddings_context(directory: Path, name: str) -> StageContext:
    """The stage `embeddings` of a corpus of many parts, with its artefact at `name`."""
    texts = [f"red green blue {i} sky {i % 5} word{i}" for i in range(400)]
    corpus = write_corpus(directory / f"{name}.corpus", texts, **SMALL_PARTS)
    config = run_config(embedder=TfidfEmbedder(dimensions=4, fit_documents=25))
    return context_at(directory / name, directory / "work", config, {"corpus": corpus})


def run_stage(directory: Path, engine: Engine, kill: Callable[[], Any]) -> None:
    """The stage `embeddings`, with a node killed when its first parts were there."""
    context = embeddings_context(directory, "output")
    parts = directory / "work" / "parts"
    thread = when(lambda: len(list(parts.glob("*.npy"))) >= 10, kill)
    embeddings_stage.build(dataclasses.replace(context, engine=engine))
    thread.join()


def main() -> None:
    """Two nodes of one core each beside a head that has none; a node that was killed is replaced by another."""
    from ray.cluster_utils import Cluster

    directory = Path(sys.argv[1])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()

    def kill() -> None:
        cluster.remove_node(nodes.pop(0), allow_graceful=False)

    try:
        with open_engine(RayEngineConfig(address=cluster.address, retries=2), directory) as engine:
            result = {"workers": engine.workers} | run_map(directory, engine, kill)
            nodes.append(cluster.add_node(num_cpus=1))
            run_stage(directory, engine, kill)
        (directory / "result.json").write_text(json.dumps(result))
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
