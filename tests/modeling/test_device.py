"""Devices as configurations mean them, with CUDA's answers in place of a GPU."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.engine.gpus import Gpu
from paribus.errors import ConfigurationError, OutOfMemoryError
from paribus.evaluation import translation
from paribus.evaluation.heldout import TextPair
from paribus.evaluation.translation import Translator
from paribus.modeling.device import BatchMemory, resolve_device, usable_gpus
from paribus.tokenization import Tokenizer
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


# Batches for which memory is short: halved, with nothing lost, doubled or put in another place.

WORDS = ["a", "bcd", "", "efghi", "jk", "lmn", "o"]
BYTES = Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))


def refusing(most: int, kind: type[BaseException] = torch.OutOfMemoryError) -> Any:
    """Doubles numbers, of so many at a time."""

    def compute(batch: Sequence[int]) -> list[int]:
        if len(batch) > most:
            raise kind("DefaultCPUAllocator: can't allocate memory" if kind is RuntimeError else "short")
        return [2 * item for item in batch]

    return compute


@pytest.mark.parametrize("kind", [torch.OutOfMemoryError, MemoryError, RuntimeError])
@pytest.mark.parametrize(("most", "parts"), [(7, [7]), (4, [3, 4]), (3, [3, 2, 2]), (1, [1] * 7)])
def test_parts_come_in_order_with_their_results(most: int, parts: list[int], kind: type[BaseException]) -> None:
    found = list(BatchMemory("testing").computed(refusing(most, kind), range(7)))
    assert [len(batch) for batch, _ in found] == parts
    assert [item for _, result in found for item in result] == list(range(0, 14, 2))


def test_the_following_batches_begin_with_what_a_batch_was_halved_to() -> None:
    memory, tried = BatchMemory("testing"), list[int]()

    def compute(batch: Sequence[int]) -> list[int]:
        tried.append(len(batch))
        return refusing(2)(batch)

    for _ in range(2):
        found = [item for _, result in memory.computed(compute, range(8)) for item in result]
        assert found == list(range(0, 16, 2))
    assert tried == [8, 4, 2, 2, 4, 2, 2, 2, 2, 2, 2]


def test_other_errors_and_what_a_single_item_needs_are_told() -> None:
    with pytest.raises(OutOfMemoryError, match=r"^testing ran out of memory with a single one .*\(short\)$"):
        list(BatchMemory("testing").computed(refusing(0), range(7)))
    with pytest.raises(ValueError, match="short"):
        list(BatchMemory("testing").computed(refusing(0, ValueError), range(7)))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_source_keeps_its_translation(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def echoed(self: Translator, rows: Sequence[Any]) -> list[Any]:
        if len(rows) > most:
            raise torch.OutOfMemoryError("short")
        return [row[:-1] for row in rows]

    monkeypatch.setattr(Translator, "_generated", echoed)
    told: list[tuple[int, int]] = []
    translator = Translator(None, BYTES, context_length=16, batch_tokens=3 * 5 * 6)
    assert translator.translate(WORDS, lambda done, total: told.append((done, total))) == WORDS
    assert told[-1] == (7, 7) and told == sorted(told)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_target_keeps_its_bits(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(model: Any, batch: Sequence[Any]) -> Any:
        if len(batch) > most:
            raise torch.OutOfMemoryError("short")
        return np.array([float(len(part.scored)) for part in batch])

    monkeypatch.setattr(translation, "_window_nats", counted)
    found = Translator(None, BYTES, context_length=4, batch_tokens=3 * 11).bits(
        [TextPair(word, "x", word) for word in WORDS]
    )
    assert (found.bits * np.log(2)).round(9).tolist() == [len(word) for word in WORDS]
