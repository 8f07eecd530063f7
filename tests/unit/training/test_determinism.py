"""Deterministic trainings: what is refused, and that nothing of it is left behind."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.errors import ConfigurationError, DataError
from paribus.training import losses, parallel, train
from paribus.training.fit import Fit
from paribus.training.parallel import determinism_conditions, deterministic
from support.stages import files
from support.training_inputs import TRAINING, config, execute, write_inputs

STRICT = dataclasses.replace(TRAINING, deterministic=True)


def test_an_operation_without_a_deterministic_implementation_is_refused_by_the_field() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.deterministic is true.*put_"), deterministic(STRICT):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(TRAINING):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    with pytest.raises(RuntimeError, match="another"), deterministic(STRICT):
        raise RuntimeError("another")


def test_a_step_runs_under_deterministic_algorithms_and_gives_what_it_gives_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, asked = write_inputs(tmp_path), set()
    original = losses.loss_and_difference

    def noted(*arguments: Any) -> Any:
        asked.add((torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic))
        return original(*arguments)

    monkeypatch.setattr(losses, "loss_and_difference", noted)
    execute(tmp_path, "strict", inputs, config(training=STRICT))
    assert asked == {(True, True)}
    execute(tmp_path, "plain", inputs)
    strict, plain = (files(tmp_path / name / "output") for name in ("strict", "plain"))
    assert {name for name in plain if strict[name] != plain[name]} == {"state/state.json"}


def test_layers_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "missing_for_compilation", lambda gpu: None)
    gpu = torch.device("cuda", 0)
    assert [parallel.compiles(training, gpu) for training in (STRICT, TRAINING)] == [False, True]


def test_going_on_under_other_conditions_is_refused_by_name(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "run", inputs, config(training=STRICT))
    with pytest.raises(DataError, match=r"training\.deterministic: micro_batch: 3 there, 2 here\); give it again"):
        execute(tmp_path, "run", inputs, config(training=dataclasses.replace(STRICT, micro_batch=2)))


def test_what_was_refused_changes_nothing_of_what_goes_on(tmp_path: Path) -> None:
    """Less memory for a while lowers the micro-batch, which is refused; with memory the same command is as before."""
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "run", inputs, config(training=STRICT))
    kept = tmp_path / "run" / "work" / "micro_batch.json"
    before = kept.read_bytes()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DataError, match="micro_batch: 3 there, 1 here"):
        patch.setattr(train, "fit", lambda *_: Fit(1))
        execute(tmp_path, "run", inputs, config(training=STRICT))
    assert kept.read_bytes() == before
    execute(tmp_path, "run", inputs, config(training=STRICT))


@pytest.mark.parametrize("name", ["shard_processes", "processes_a_node"])
def test_what_else_decides_in_which_order_gpus_sum_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of groups with a copy each, within these first; and as many processes on fewer nodes have other wires."""
    gpu, found = SimpleNamespace(num_processes=8, device=torch.device("cuda", 0)), []
    for shards, a_node in ((0, "8"), (2, "4"), (8, "8")):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", a_node)
        strict = dataclasses.replace(STRICT, parallel="fsdp", shard_processes=shards)
        found.append(determinism_conditions(strict, gpu, "NVIDIA H100", "bf16"))
    assert [told[f"training.deterministic: {name}"] for told in found] == {
        "shard_processes": [None, 2, None],
        "processes_a_node": [8, 4, 8],
    }[name]


@pytest.mark.parametrize("strict", [True, False])
def test_ddp_keeps_its_buckets_where_sums_must_come_in_one_order(strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def accelerator(**options: Any) -> Any:
        given.update(options)
        return SimpleNamespace(num_processes=1)

    monkeypatch.setattr(parallel, "Accelerator", accelerator)
    parallel.make_accelerator(dataclasses.replace(TRAINING, deterministic=strict))
    assert given["kwargs_handlers"][0].find_unused_parameters is strict
