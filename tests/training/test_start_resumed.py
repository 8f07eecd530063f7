"""`start.optimizer=resumed`: a training that goes on with the optimizer, the steps and the place of another one."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from paribus.config.groups.model import CheckpointStart, ContinuedStart
from paribus.config.groups.ordering import ConcatenatePacking
from paribus.config.groups.tokenization import BytesTokenizer, LongestFirstEncoder
from paribus.config.groups.training import EqualStepsBudget
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.ordering.orders import write_order
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepared import run_identity
from paribus.reporting.equality import differing, flatten
from paribus.store.artifacts import file_digests, write_record
from paribus.training.start import FIRST, check_start_state
from support.stages import files
from support.training_inputs import MODEL, TRAINING, config, execute, write_inputs

CONSTANT = dataclasses.replace(TRAINING, warmup_share=0.0, min_learning_rate_ratio=1.0)
HALF, WHOLE = 7, 14
STATE = "state/state.json"
"""Holds the fields of the group `start`, which differ."""


def scratch(steps: int, **changes: Any) -> RunConfig:
    training = dataclasses.replace(changes.pop("training", CONSTANT), keep_checkpoints=1)
    tokenizer = BytesTokenizer(special_tokens=("<|endoftext|>",))
    given = {"budget": EqualStepsBudget(steps=steps), "training": training, "tokenizer": tokenizer}
    return config(**(given | changes))


def resumed(path: Path, steps: int = WHOLE, start: dict[str, Any] | None = None, **changes: Any) -> RunConfig:
    fields = {"path": str(path), "optimizer": "resumed"} | (start or {})
    return scratch(steps, start=CheckpointStart(**fields), **changes)


def metrics(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def half(inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artefact of a training of half of the steps."""
    root = tmp_path_factory.mktemp("half")
    result = execute(root, "run", inputs, scratch(HALF))
    output = root / "run" / "output"
    write_record(output, {"stage": "training", "key": "0", "files": file_digests(output), "result": result})
    return output


@pytest.fixture
def copy(half: Path, tmp_path: Path) -> Path:
    """That artefact, to change."""
    return Path(shutil.copytree(half, tmp_path / "copy"))


def assert_equal_but_for_the_start(one: Path, other: Path) -> None:
    first, second = (files(run / "output") for run in (one, other))
    assert first.pop(STATE) != second.pop(STATE)
    assert first == second


def test_two_halves_are_the_bytes_of_a_whole(half: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    whole = execute(tmp_path, "whole", inputs, scratch(WHOLE))
    both = execute(tmp_path, "both", inputs, resumed(half))
    assert_equal_but_for_the_start(tmp_path / "whole", tmp_path / "both")
    assert (whole["first_step"], both["first_step"]) == (0, HALF)
    assert both["computed_on"] == whole["computed_on"]
    # A run that makes its first training itself ends with the bytes of one that names it.
    execute(tmp_path, "own", {**inputs, FIRST: half}, scratch(WHOLE, start=ContinuedStart(steps=HALF)))
    assert files(tmp_path / "own" / "output") == files(tmp_path / "both" / "output")
    # An optimizer that starts afresh is another training.
    execute(tmp_path, "fresh", inputs, resumed(half, HALF, {"optimizer": "fresh"}))
    lines, fresh = (metrics(tmp_path / name / "output") for name in ("whole", "fresh"))
    assert fresh[0]["train/loss"] != lines[HALF]["train/loss"]
    assert fresh[0]["train/tokens"] == lines[0]["train/tokens"]


def test_other_contexts_are_refused_since_steps_of_both_are_counted_by_one(half: Path, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    shutil.rmtree(inputs["order"])
    inputs["order"].mkdir()
    write_order(inputs["order"], np.random.default_rng(4).permutation(40), kept=40, removed=0)
    with pytest.raises(
        ConfigurationError, match=r"start\.optimizer: resumed, but the contexts of .* are others \(order\)"
    ):
        execute(tmp_path, "other", inputs, resumed(half))


def test_state_of_the_first_training_is_part_of_identity_and_proof(half: Path, copy: Path, tmp_path: Path) -> None:
    def key(path: Path, **start: Any) -> str:
        return build_graph(resumed(path, start=start), tmp_path / "cache")["training"].key

    assert key(half) == key(copy) != key(half, optimizer="fresh")
    moments = load_file(copy / "state" / "optimizer.safetensors")
    save_file({name: tensor * 2 for name, tensor in moments.items()}, copy / "state" / "optimizer.safetensors")
    assert key(half) != key(copy)
    assert key(half, optimizer="fresh") == key(copy, optimizer="fresh")
    runs = []
    for path in (half, copy):
        run = resumed(path)
        runs.append((path.name, flatten(run_identity(run, build_graph(run, tmp_path / "cache")))))
    differences = [difference.path for difference in differing(runs, ())]
    assert differences == ["fingerprints.start.state.optimizer.safetensors"]
    assert differing(runs, ("start",)) == []
    assert "start.optimizer" in dict(runs[0][1])


def test_fields_that_must_agree_are_refused_with_both_values_before_anything_runs(half: Path, copy: Path) -> None:
    elsewhere = "in the training that start.optimizer=resumed goes on with"
    batch = dataclasses.replace(CONSTANT, global_batch=8)
    assert check_start_state(resumed(half)) == []
    for changes, expected in (
        ({"training": batch}, {"training.global_batch": f"8, but 4 {elsewhere}"}),
        ({"packing": ConcatenatePacking(shuffle="none")}, {"packing.shuffle": "none, but text"}),
        ({"encoder": LongestFirstEncoder()}, {"encoder": f"longest_first, but merge_rank {elsewhere}"}),
        ({"seed": 1}, {"seeds.contexts": f"1, but 0 {elsewhere}"}),
        (
            {"model": dataclasses.replace(MODEL, context_length=8, width=32)},
            {"model.width": "32, but 16", "model.context_length": "8, but 16"},
        ),
    ):
        problems = dict(check_start_state(resumed(half, **changes)))
        assert problems.keys() == expected.keys(), problems
        assert all(problems[path].startswith(message) for path, message in expected.items()), problems
    assert check_start_state(resumed(half, encoder=LongestFirstEncoder(), start={"optimizer": "fresh"})) == []
    shutil.copytree(copy / f"step_{HALF:08d}", copy / "step_00000005")
    (message,) = dict(check_start_state(resumed(copy, start={"step": 5}))).values()
    assert "keeps the optimizer of its last step, 7, and not of step 5" in message
    state = json.loads((copy / STATE).read_text())
    state["fingerprint"]["training.kind"] = "adafactor"
    (copy / STATE).write_text(json.dumps(state))
    assert dict(check_start_state(resumed(copy)))["training.kind"].startswith(f"adamw, but adafactor {elsewhere}")
