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
from paribus.errors import ConfigurationError
from paribus.evaluation import translation
from paribus.evaluation.heldout import TextPair
from paribus.evaluation.translation import Translator
from paribus.modeling.device import BatchMemory, resolve_device
from paribus.tokenization import Tokenizer
from paribus.training import parallel
from support.nvidia_smi import list_gpus


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A PyTorch that sees four GPUs; the numbers that it was told to compute on."""
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch._C, "_cuda_setDevice", chosen.append, raising=False)
    return chosen


@pytest.mark.usefixtures("four")
def test_gpu_has_an_index() -> None:
    for device, index in (("auto", 0), ("cuda", 0), ("cuda:0", 0), ("cuda:3", 3)):
        assert resolve_device(device, "training.device") == torch.device("cuda", index)
    for device in ("gpu", "cuda:", "cuda:x", "cuda:99"):
        with pytest.raises(ConfigurationError, match=rf"training\.device is '{device}'"):
            resolve_device(device, "training.device")


def test_training_computes_on_the_gpu_of_its_number(four: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """`set_device` is PyTorch's own, which refuses a device without an index."""
    monkeypatch.setenv("LOCAL_RANK", "3")
    for device, processes, index in (("auto", 1, 0), ("cuda", 1, 0), ("cuda:2", 1, 2), ("cuda", 4, 3)):
        options: dict[str, Any] = {}

        def accelerator(options: dict[str, Any] = options, processes: int = processes, **given: Any) -> Any:
            options.update(given)
            return SimpleNamespace(num_processes=processes)

        monkeypatch.setattr(parallel, "Accelerator", accelerator)
        parallel.make_accelerator(TrainingConfig(device=device, precision="bf16"), processes)
        assert (four.pop(), options["cpu"]) == (index, False), (device, processes)


def test_pytorch_that_sees_none_of_the_drivers_gpus_is_no_reason_to_use_the_cpu(
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
def test_parts_come_in_order_with_their_results(kind: type[BaseException]) -> None:
    for most, sizes in ((7, [7]), (4, [3, 4]), (3, [3, 2, 2]), (1, [1] * 7)):
        parts = list(BatchMemory("testing").computed(refusing(most, kind), range(7)))
        assert [len(batch) for batch, _ in parts] == sizes
        assert [item for _, result in parts for item in result] == list(range(0, 14, 2))


def test_later_batches_begin_with_the_size_that_one_was_halved_to() -> None:
    memory, tried = BatchMemory("testing"), list[int]()

    def compute(batch: Sequence[int]) -> list[int]:
        tried.append(len(batch))
        return refusing(2)(batch)

    for _ in range(2):
        results = [item for _, result in memory.computed(compute, range(8)) for item in result]
        assert results == list(range(0, 16, 2))
    assert tried == [8, 4, 2, 2, 4, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_source_keeps_its_translation_and_every_target_its_bits(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_above(rows: Sequence[Any]) -> None:
        if len(rows) > most:
            raise torch.OutOfMemoryError("short")

    def echo(self: Translator, rows: Sequence[Any]) -> list[Any]:
        refuse_above(rows)
        return [row[:-1] for row in rows]

    def count(model: Any, batch: Sequence[Any]) -> Any:
        refuse_above(batch)
        return np.array([float(len(part.scored)) for part in batch])

    monkeypatch.setattr(Translator, "_generated", echo)
    monkeypatch.setattr(translation, "_window_nats", count)
    progress: list[tuple[int, int]] = []
    translator = Translator(None, BYTES, context_length=16, batch_tokens=3 * 5 * 6)
    assert translator.translate(WORDS, lambda done, total: progress.append((done, total))) == WORDS
    assert progress[-1] == (7, 7) and progress == sorted(progress)
    scorer = Translator(None, BYTES, context_length=4, batch_tokens=3 * 11)
    scored = scorer.bits([TextPair(word, "x", word) for word in WORDS])
    assert (scored.bits * np.log(2)).round(9).tolist() == [len(word) for word in WORDS]
