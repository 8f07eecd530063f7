"""Which work has attention done by kernels that plan nothing for a shape."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, varlen

from paribus.config.groups.ordering import ConcatenatePacking
from paribus.evaluation.scoring import load_checkpoint_model
from paribus.modeling.decoder import Documents, attend
from paribus.modeling.device import expect_many_shapes
from support.training_inputs import config, execute, pair_config, write_inputs, write_pair_inputs


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


def test_trainings_within_documents_may_not(tmp_path: Path) -> None:
    execute(tmp_path, "run", write_inputs(tmp_path), config(packing=ConcatenatePacking(attention="document")))
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.skipif(not hasattr(varlen, "_select_backend"), reason="this PyTorch has one kernel for documents")
def test_of_two_kernels_within_documents_that_is_taken_which_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch chooses on an H100 from 2.15 on; it says of none that it is not deterministic."""
    monkeypatch.setattr(varlen, "_cudnn_version_and_major_capability", lambda index: (92_600, 9))
    chosen, select = [], varlen._select_backend
    monkeypatch.setattr(
        varlen, "_select_backend", lambda *given, **more: chosen.append(select(*given, **more)) or chosen[-1]
    )
    with FakeTensorMode():
        heads = torch.empty(4, 1024, 16, 64, dtype=torch.bfloat16, device="cuda:0", requires_grad=True)
        documents = Documents(torch.empty(9, dtype=torch.int32, device="cuda:0"), 1024)
        attend(heads, heads, heads, documents)
        expect_many_shapes()
        attend(heads, heads, heads, documents)
    assert [torch._C._SDPBackend(kernel) for kernel in chosen] == [
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.FLASH_ATTENTION,
    ]


def test_trainings_of_pairs_may_not(tmp_path: Path) -> None:
    execute(tmp_path, "run", write_pair_inputs(tmp_path), pair_config())
    assert not torch.backends.cuda.cudnn_sdp_enabled()
