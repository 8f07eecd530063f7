"""Choosing a device, its memory and its precision: on the first GPU where there is one, else on the CPU."""

import pytest
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.modeling.device import resolve_device
from paribus.training.micro_batch import available_bytes
from paribus.training.parallel import device_name, make_accelerator, resolve_precision

pytestmark = pytest.mark.gpu
GPU = torch.cuda.is_available()


def test_the_device_has_an_index_and_trains() -> None:
    device = resolve_device("auto", "training.device")
    assert (device.type, device.index) == (("cuda", 0) if GPU else ("cpu", None))
    accelerator, precision = make_accelerator(TrainingConfig())
    assert accelerator.device.type == device.type
    assert precision == resolve_precision("auto", device)
    assert device_name(device)


@pytest.mark.skipif(not GPU, reason="a CPU's memory is not looked at")
def test_memory_that_pytorch_keeps_counts_as_free() -> None:
    device = resolve_device("auto", "training.device")
    before = available_bytes(device)
    assert before is not None
    kept = torch.empty(2**26, dtype=torch.uint8, device=device)
    kept.fill_(1)
    del kept
    after = available_bytes(device)
    assert after is not None and after >= before - 2**21
