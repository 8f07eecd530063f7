"""Runs that are finished without anything having been computed: records, results and scores alone."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.root import OutputRoot
from support.tables import write_scores


def finish(run: PreparedRun, number: int, made: Path) -> None:
    """A run whose artefacts are empty but for its training's result and its scores: two tasks, five checkpoints."""
    layout, drawn = OutputRoot.of(run.job.config), np.random.default_rng(number)
    config = run.job.config
    recorder = RunRecord(config, run.nodes, layout)
    later = [answers(drawn) for _ in range(5)]
    heldout = [(float(900 + 100 * drawn.random()), 400) for _ in range(40)]
    scores = write_scores(made / run.run_id, later[0], heldout=heldout, checkpoints=5, later=later[1:])
    for name, node in run.nodes.items():
        held = layout.store.claim(name, node.key)
        assert held is not None
        with held:
            if layout.store.find(name, node.key) is None:
                output = layout.store.empty_output(held, name, node.key)
                if name == "evaluation":
                    shutil.copytree(scores, output, dirs_exist_ok=True)
                result = {"tokens": 64_000, "text_bytes": 120_000, "steps": 125, "epochs": 0.3, "device": "cpu"}
                provenance = {"packages": {}, "python": "3.11.7"}
                layout.store.publish(held, name, node.key, {"result": result, "provenance": provenance})
        artifact = layout.store.find(name, node.key)
        assert artifact is not None
        recorder.stage(node, artifact, "made", 1.0)
    recorder.finish(None)


def answers(drawn: np.random.Generator) -> dict[tuple[str, int], Any]:
    return {(task, shots): drawn.integers(0, 2, 40) for task in ("boolq", "piqa") for shots in (0, 5)}
