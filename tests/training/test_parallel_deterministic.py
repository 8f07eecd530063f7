"""Deterministic trainings: what is refused, and that nothing of it is left behind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config
import torch.distributed

from paribus.errors import ConfigurationError, DataError
from paribus.training import losses, train
from paribus.training.fit import Fit
from paribus.training.parallel import deterministic
from support.stages import files
from support.training_inputs import TRAINING, config, execute, write_inputs

STRICT = replace(TRAINING, deterministic=True)


def test_operation_without_a_deterministic_implementation_is_refused_by_the_field() -> None:
    with pytest.raises(ConfigurationError, match=r"training\.deterministic is true.*put_"), deterministic(STRICT):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(TRAINING):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    with pytest.raises(RuntimeError, match="another"), deterministic(STRICT):
        raise RuntimeError("another")


def test_steps_run_under_deterministic_algorithms_and_equal_those_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, enabled = write_inputs(tmp_path), set()
    original = losses.loss_and_difference

    def recorded(*arguments: Any) -> Any:
        enabled.add((torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic))
        return original(*arguments)

    monkeypatch.setattr(losses, "loss_and_difference", recorded)
    execute(tmp_path, "strict", inputs, config(training=STRICT))
    assert enabled == {(True, True)}
    execute(tmp_path, "plain", inputs)
    strict, plain = (files(tmp_path / name / "output") for name in ("strict", "plain"))
    assert {name for name in plain if strict[name] != plain[name]} == {"state/state.json"}


def test_deterministic_training_refuses_other_conditions_and_a_refusal_changes_nothing(tmp_path: Path) -> None:
    """Less memory for a while lowers the micro-batch, which is refused; with memory the same command is as before."""
    inputs = write_inputs(tmp_path)
    execute(tmp_path, "run", inputs, config(training=STRICT))
    with pytest.raises(DataError, match=r"training\.deterministic: micro_batch: 3 there, 2 here\); give it again"):
        execute(tmp_path, "run", inputs, config(training=replace(STRICT, micro_batch=2)))
    execute(tmp_path, "run", inputs, config(training=STRICT))
    record = tmp_path / "run" / "work" / "micro_batch.json"
    before = record.read_bytes()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DataError, match="micro_batch: 3 there, 1 here"):
        patch.setattr(train, "fit", lambda *_: Fit(1))
        execute(tmp_path, "run", inputs, config(training=STRICT))
    assert record.read_bytes() == before
    execute(tmp_path, "run", inputs, config(training=STRICT))
