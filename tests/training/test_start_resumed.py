"""`start.optimizer=resumed`: a training that goes on with the optimizer, the steps and the place of another one."""

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from paribus.checks import check_schedule, check_scored_checkpoints
from paribus.config.groups.model import CheckpointStart, ContinuedStart, ScratchStart
from paribus.config.groups.ordering import ConcatenatePacking
from paribus.config.groups.tokenization import BytesTokenizer, LongestFirstEncoder
from paribus.config.groups.training import EqualStepsBudget, EqualTokensBudget
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.ordering.orders import write_order
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepared import run_identity
from paribus.reporting.equality import differing, flatten
from paribus.store.artifacts import file_digests, write_record
from paribus.training.start import FIRST, check_start_state, steps_before
from support.stages import files
from support.training_inputs import MODEL, TRAINING, config, execute, write_inputs

CONSTANT = dataclasses.replace(TRAINING, warmup_share=0.0, min_learning_rate_ratio=1.0)
HALF, WHOLE = 7, 14
OWN_NAME = "state/state.json"
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


def test_two_halves_under_an_inverse_square_root_are_the_bytes_of_a_whole(inputs: Any, tmp_path: Path) -> None:
    falling = dataclasses.replace(TRAINING, schedule="inverse_sqrt", warmup_steps=3)
    execute(tmp_path, "whole", inputs, scratch(WHOLE, training=falling))
    execute(tmp_path, "half", inputs, scratch(HALF, training=falling))
    execute(tmp_path, "both", inputs, resumed(tmp_path / "half" / "output", training=falling))
    once, twice = (files(tmp_path / name / "output") for name in ("whole", "both"))
    assert once.pop(OWN_NAME) != twice.pop(OWN_NAME)
    assert once == twice


def test_two_halves_are_the_bytes_of_a_whole(half: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    whole = execute(tmp_path, "whole", inputs, scratch(WHOLE))
    both = execute(tmp_path, "both", inputs, resumed(half))
    once, twice = (files(tmp_path / name / "output") for name in ("whole", "both"))
    assert once.pop(OWN_NAME) != twice.pop(OWN_NAME)
    assert once == twice
    assert {f"step_{WHOLE:08d}/model.safetensors", "state/optimizer.safetensors", "metrics.jsonl"} < once.keys()
    assert (whole["first_step"], both["first_step"]) == (0, HALF)
    assert both["computed_on"] == whole["computed_on"]


def test_a_run_that_continues_its_own_training_makes_the_bytes_of_one_that_resumes_it_by_name(
    half: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    execute(tmp_path, "named", inputs, resumed(half))
    execute(tmp_path, "own", {**inputs, FIRST: half}, scratch(WHOLE, start=ContinuedStart(steps=HALF)))
    named, own = (files(tmp_path / name / "output") for name in ("named", "own"))
    assert own == named


def test_an_optimizer_that_starts_afresh_is_another_training(half: Path, inputs: Any, tmp_path: Path) -> None:
    execute(tmp_path, "whole", inputs, scratch(WHOLE))
    execute(tmp_path, "fresh", inputs, resumed(half, HALF, {"optimizer": "fresh"}))
    whole, fresh = (metrics(tmp_path / name / "output") for name in ("whole", "fresh"))
    assert fresh[0]["train/loss"] != whole[HALF]["train/loss"]
    assert fresh[0]["train/tokens"] == whole[0]["train/tokens"]


def test_the_schedule_is_the_run_s_own_at_the_steps_of_both(half: Path, inputs: Any, tmp_path: Path) -> None:
    falling = dataclasses.replace(TRAINING, warmup_share=0.15, min_learning_rate_ratio=0.1)
    execute(tmp_path, "whole", inputs, scratch(WHOLE, training=falling))
    execute(tmp_path, "both", inputs, resumed(half, training=falling))
    whole, both = (metrics(tmp_path / name / "output") for name in ("whole", "both"))
    rates = [[line["train/learning_rate"] for line in lines] for lines in (whole, both)]
    assert rates[0][HALF:] == rates[1][HALF:]
    assert rates[0][:HALF] != rates[1][:HALF] == [TRAINING.learning_rate] * HALF


def test_a_resumed_training_that_was_killed_goes_on_from_its_own_checkpoint(
    half: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    execute(tmp_path, "whole", inputs, resumed(half))
    often = dataclasses.replace(CONSTANT, checkpoint_every=2)
    execute(tmp_path, "killed", inputs, resumed(half, training=often))
    work = tmp_path / "killed" / "work"
    shutil.rmtree(work / f"step_{WHOLE:08d}")
    lines = (work / "metrics.jsonl").read_text().splitlines(keepends=True)
    (work / "metrics.jsonl").write_text("".join(lines[:13]))
    execute(tmp_path, "killed", inputs, resumed(half, training=often))
    assert "from the checkpoint of step 12" in (tmp_path / "killed" / "said.json").read_text()
    (work / "metrics.jsonl").write_text("")
    execute(tmp_path, "killed", inputs, resumed(half, training=often))
    once, twice = (files(tmp_path / name / "output") for name in ("whole", "killed"))
    assert once == twice


def test_other_data_are_refused_since_steps_of_both_are_counted_by_one(half: Path, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    shutil.rmtree(inputs["order"])
    inputs["order"].mkdir()
    write_order(inputs["order"], np.random.default_rng(4).permutation(40), kept=40, removed=0)
    with pytest.raises(
        ConfigurationError, match=r"start\.optimizer: resumed, but the contexts of .* are others \(order\)"
    ):
        execute(tmp_path, "other", inputs, resumed(half))
    ((path, message),) = check_start_state(resumed(half, seed=1))
    assert path == "seeds.contexts"
    assert message.startswith("1, but 0 in the training that start.optimizer=resumed goes on with")
    assert message.endswith("so take that; start=continued makes both trainings of every seed")


def test_what_the_first_training_left_is_pinned_and_the_proof_shows_it(half: Path, copy: Path, tmp_path: Path) -> None:
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
    found = [difference.path for difference in differing(runs, ())]
    assert found == ["fingerprints.start.state.optimizer.safetensors"]
    assert differing(runs, ("start",)) == []
    assert any(path == "start.optimizer" for path in runs[0][1])


def test_a_state_that_is_not_there_is_refused_before_anything_runs(copy: Path, tmp_path: Path) -> None:
    assert check_start_state(resumed(copy)) == []
    (copy / "state" / "optimizer.safetensors").unlink()
    ((path, message),) = check_start_state(resumed(copy))
    assert path == "start.optimizer"
    assert "optimizer.safetensors is missing" in message
    alone = shutil.copytree(copy / f"step_{HALF:08d}", tmp_path / "alone")
    ((path, message),) = check_start_state(resumed(alone))
    assert path == "start.optimizer"
    assert "there is no state/state.json" in message
    assert "the artefact of a training that paribus finished" in message
    with pytest.raises(DataError, match=r"there is no state/state.json"):
        build_graph(resumed(alone), tmp_path / "cache")


def test_a_checkpoint_that_is_not_the_last_has_no_optimizer(copy: Path) -> None:
    shutil.copytree(copy / f"step_{HALF:08d}", copy / "step_00000005")
    ((path, message),) = check_start_state(resumed(copy, start={"step": 5}))
    assert path == "start.optimizer"
    assert "keeps the optimizer of its last step, 7, and not of step 5" in message
    assert check_start_state(resumed(copy, start={"step": 5, "optimizer": "fresh"})) == []


def test_what_must_agree_is_named_with_both_values(half: Path, copy: Path) -> None:
    run = resumed(half, training=dataclasses.replace(CONSTANT, global_batch=8))
    assert [path for path, _ in check_start_state(run)] == ["training.global_batch"]
    assert check_start_state(run)[0][1].startswith("8, but 4 in the training that start.optimizer=resumed goes on with")
    run = resumed(half, model=dataclasses.replace(MODEL, context_length=8, width=32))
    assert [path for path, _ in check_start_state(run)] == ["model.width", "model.context_length"]
    run = resumed(half, packing=ConcatenatePacking(shuffle="none"))
    assert "packing.shuffle" in dict(check_start_state(run))
    state = json.loads((copy / "state" / "state.json").read_text())
    state["fingerprint"]["training.kind"] = "adafactor"
    (copy / "state" / "state.json").write_text(json.dumps(state))
    assert check_start_state(resumed(copy))[0] == (
        "training.kind",
        "adamw, but adafactor in the training that start.optimizer=resumed goes on with; the moments of one optimizer "
        "are none of another",
    )


def test_of_checkpoints_those_stay_that_stand_after_the_first_training(half: Path, inputs: Any, tmp_path: Path) -> None:
    run = resumed(half, 9)
    run = dataclasses.replace(run, training=dataclasses.replace(run.training, keep_checkpoints=4, checkpoints=4))
    execute(tmp_path, "run", inputs, run)
    assert [path.name for path in (tmp_path / "run" / "output").glob("step_*")] == ["step_00000009"]
    assert [*check_start_state(run), *check_scored_checkpoints(run, None)] == []
    run = dataclasses.replace(run, evaluation=dataclasses.replace(run.evaluation, last_checkpoints=2))
    ((path, message),) = [*check_start_state(run), *check_scored_checkpoints(run, None)]
    assert (path, message) == (
        "evaluation.last_checkpoints",
        "2 are to be scored or averaged, and the first 1 would stand where the training that is gone on from was not "
        "over; take 1 or less, or a larger training.checkpoints",
    )
    run = dataclasses.replace(run, budget=EqualTokensBudget(tokens=9 * 4 * 16))
    assert list(check_scored_checkpoints(run, None)) == [(path, message)]
    with pytest.raises(ConfigurationError, match=r"evaluation.last_checkpoints: 2 are to be scored"):
        execute(tmp_path, "tokens", inputs, run)


def test_a_budget_that_ends_too_early_is_refused(half: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    run, message = resumed(half, HALF), r"budget.steps: it ends after step 7, and 7 are done"
    with pytest.raises(ConfigurationError, match=message):
        execute(tmp_path, "run", inputs, run)
    ((path, found),) = [*check_start_state(run), *check_schedule(run, None)]
    assert re.match(message, f"{path}: {found}")
    tokens = HALF * 4 * 16
    with pytest.raises(ConfigurationError, match=message.replace("budget.steps", "budget.tokens")):
        execute(tmp_path, "tokens", inputs, dataclasses.replace(run, budget=EqualTokensBudget(tokens=tokens)))


def test_another_encoder_is_refused_before_anything_runs(half: Path) -> None:
    ((path, message),) = check_start_state(resumed(half, encoder=LongestFirstEncoder()))
    assert path == "encoder"
    assert message.startswith("longest_first, but merge_rank in the training that start.optimizer=resumed goes on with")
    assert check_start_state(resumed(half, encoder=LongestFirstEncoder(), start={"optimizer": "fresh"})) == []


def test_steps_that_are_done_are_counted_where_they_are(half: Path, copy: Path) -> None:
    assert steps_before(resumed(half)) == HALF
    assert steps_before(resumed(half, start={"optimizer": "fresh"})) == 0
    assert steps_before(scratch(WHOLE, start=ScratchStart())) == 0
    shutil.rmtree(copy / "state")
    assert steps_before(resumed(copy)) == 0
