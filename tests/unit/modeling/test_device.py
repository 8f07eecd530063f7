"""Devices as configurations mean them, with CUDA's answers in place of a GPU."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.engine.gpus import Gpu
from paribus.errors import ConfigurationError
from paribus.modeling.device import resolve_device, usable_gpus
from paribus.training import parallel
from support.drivers import list_gpus


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A PyTorch that sees four GPUs; the numbers that it was told to compute on."""
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch._C, "_cuda_setDevice", chosen.append, raising=False)
    return chosen


@pytest.mark.parametrize(("device", "index"), [("auto", 0), ("cuda", 0), ("cuda:0", 0), ("cuda:3", 3)])
@pytest.mark.usefixtures("four")
def test_a_gpu_has_an_index(device: str, index: int) -> None:
    assert resolve_device(device, "training.device") == torch.device("cuda", index)


@pytest.mark.parametrize(
    ("device", "processes", "index"), [("auto", 1, 0), ("cuda", 1, 0), ("cuda:2", 1, 2), ("cuda", 4, 3)]
)
def test_a_training_computes_on_the_gpu_of_its_number(
    device: str, processes: int, index: int, four: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`set_device` is PyTorch's own, which refuses a device without an index."""
    made: list[dict[str, Any]] = []

    def accelerator(**given: Any) -> Any:
        made.append(given)
        return SimpleNamespace(num_processes=processes)

    monkeypatch.setattr(parallel, "Accelerator", accelerator)
    monkeypatch.setenv("LOCAL_RANK", "3")
    parallel.make_accelerator(TrainingConfig(device=device, precision="bf16"), processes)
    assert four == [index]
    assert [given["cpu"] for given in made] == [False]


def test_a_pytorch_that_sees_none_of_the_drivers_gpus_is_no_reason_to_use_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_gpus([Gpu("0", "GPU-a"), Gpu("1", "GPU-b")], tmp_path, monkeypatch)
    monkeypatch.setattr(torch.version, "cuda", None)
    message = r"evaluation\.device: .* driver \(580\.65\.06\) lists 2 GPUs: PyTorch \S+ is built without CUDA"
    with pytest.raises(ConfigurationError, match=message) as refused:
        resolve_device("auto", "evaluation.device")
    assert torch.__version__ in str(refused.value)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(ConfigurationError, match=r"is built for CUDA 13\.0, which this driver may be too old for"):
        resolve_device("auto", "evaluation.device")
    assert resolve_device("cpu", "evaluation.device").type == "cpu"


@pytest.mark.parametrize("visible", ["", "-1", "NoDevFiles", "none", "7"])
def test_gpus_that_the_environment_hides_are_not_missed(
    visible: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_gpus([Gpu("0", "GPU-a")], tmp_path, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert resolve_device("auto", "training.device").type == "cpu"


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_driver_too_old_for_pytorch_has_no_gpu_for_it_however_many_it_counts(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is NVML's until CUDA is begun."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    assert usable_gpus() == 0
    with pytest.raises(ConfigurationError, match=rf"training\.device is '{device}', but 0 CUDA devices are visible"):
        resolve_device(device, "training.device")


def test_a_variable_of_the_environment_puts_no_training_under_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.state import AcceleratorState

    from paribus.training.parallel import make_accelerator

    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    AcceleratorState._reset_state(reset_partial_state=True)
    try:
        accelerator, precision = make_accelerator(TrainingConfig(device="cpu", precision="fp32"))
        assert (accelerator.mixed_precision, precision) == ("no", "fp32")
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
