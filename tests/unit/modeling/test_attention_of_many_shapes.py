"""Which work has attention done by kernels that plan nothing for a shape."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from paribus.evaluation.models.checkpoints import load_checkpoint_model
from support.training_inputs import execute, pair_config, write_inputs, write_pair_inputs


@pytest.fixture(autouse=True)
def planned() -> Iterator[None]:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.backends.cuda.enable_cudnn_sdp(before)


def test_trainings_of_contexts_may_plan_and_what_scores_or_generates_may_not(tmp_path: Path) -> None:
    execute(tmp_path, "run", write_inputs(tmp_path))
    assert torch.backends.cuda.cudnn_sdp_enabled()
    load_checkpoint_model(tmp_path / "run" / "output" / "step_00000014", "cpu")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_trainings_of_pairs_may_not(tmp_path: Path) -> None:
    execute(tmp_path, "run", write_pair_inputs(tmp_path), pair_config())
    assert not torch.backends.cuda.cudnn_sdp_enabled()
