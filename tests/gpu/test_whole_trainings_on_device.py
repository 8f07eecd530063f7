"""Whole trainings: on the first GPU where there is one, else on the CPU."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch._inductor.config
from started_training import ON_DEVICE

from paribus.config.groups.ordering import BestFitPacking
from paribus.config.groups.training import EqualTokensBudget
from paribus.errors import InterruptedRunError
from support.stages import files
from support.training_inputs import MODEL, TRAINING, config, execute, pair_config, write_inputs, write_pair_inputs

pytestmark = pytest.mark.gpu
STEPS = 200
STRICT = replace(TRAINING, deterministic=True, device="auto", precision="auto", checkpoint_every=1000, micro_batch=2)
BUDGET = EqualTokensBudget(tokens=STEPS * TRAINING.global_batch * MODEL.context_length)


def stop_after(steps: int, metrics: Path) -> None:
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < steps:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_deterministic_training_within_documents_that_is_stopped_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """What was compiled is forgotten between, as by another process."""
    inputs = write_inputs(tmp_path)
    given = config(training=STRICT, budget=BUDGET, packing=BestFitPacking(attention="document"))
    with torch._inductor.config.patch(force_disable_caches=True):
        execute(tmp_path, "alone", inputs, given)
        torch.compiler.reset()
        stop = threading.Thread(target=stop_after, args=(50, tmp_path / "stopped" / "work" / "metrics.jsonl"))
        stop.start()
        with pytest.raises(InterruptedRunError):
            execute(tmp_path, "stopped", inputs, given)
        stop.join()
        torch.compiler.reset()
        execute(tmp_path, "stopped", inputs, given)
    assert files(tmp_path / "alone" / "output") == files(tmp_path / "stopped" / "output")


@pytest.mark.parametrize("deterministic", [False, True])
def test_pairs_are_trained_on(deterministic: bool, tmp_path: Path) -> None:
    given = pair_config()
    training = replace(given.training, device="auto", precision="auto", deterministic=deterministic)
    result = execute(tmp_path, "pairs", write_pair_inputs(tmp_path), replace(given, training=training))
    assert isinstance(result["final_loss"], float) and 0 < result["final_loss"] < 8


def test_a_process_that_the_agent_of_a_node_starts_trains_as_this_one_does(tmp_path: Path) -> None:
    """A group of one, by NCCL on a GPU; float32 sums of a GPU may be in another order."""
    inputs = write_inputs(tmp_path)
    alone = execute(tmp_path, "alone", inputs, ON_DEVICE)
    script = str(Path(__file__).with_name("started_training.py"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, script, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    started = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert started["final_loss"] == pytest.approx(alone["final_loss"], rel=2e-3)
    assert started["steps"] == alone["steps"]
