"""The processes that compile kernels, where a signal is sent to all processes of a training."""

import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Literal

import psutil
import pytest
import torch
import torch._inductor.config
from torch._inductor.async_compile import AsyncCompile, shutdown_compile_workers

from paribus.modeling.models import build_model
from paribus.training import parallel
from paribus.training.distributed import ASKED_BY
from paribus.training.parallel import start_compiler_processes
from support.training_inputs import MODEL, TRAINING


@pytest.fixture(autouse=True)
def pool() -> Iterator[None]:
    shutdown_compile_workers()
    with torch._inductor.config.patch(compile_threads=2):
        yield
    shutdown_compile_workers()


def test_what_asks_a_training_for_a_checkpoint_does_not_end_the_compilation_of_a_kernel() -> None:
    here, before = psutil.Process(), [signal.getsignal(number) for number in ASKED_BY]
    others = {process.pid for process in here.children(recursive=True)}
    start_compiler_processes()
    assert [signal.getsignal(number) for number in ASKED_BY] == before
    compiled = AsyncCompile.process_pool().submit(time.sleep, 0)
    compiled.result(120)
    compiled = AsyncCompile.process_pool().submit(time.sleep, 2)
    ours = [process for process in here.children(recursive=True) if process.pid not in others]
    assert len(ours) >= 2
    for process, number in product(ours, ASKED_BY):
        process.send_signal(number)
    compiled.result(30)


@pytest.mark.parametrize(
    ("device", "compile_", "started"), [("cuda", "always", 1), ("cuda", "never", 0), ("cpu", "always", 0)]
)
def test_they_are_started_for_a_gpu_before_a_training_heeds_signals(
    device: str, compile_: Literal["always", "never"], started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(parallel, "start_compiler_processes", lambda: calls.append(1))
    monkeypatch.setattr(parallel, "resolve_precision", lambda *_: "fp32")
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, *_: self)
    there = SimpleNamespace(
        device=torch.device(device), num_processes=1, prepare_model=lambda it: it, no_sync=nullcontext
    )
    model = build_model(MODEL, 64, 0, eos_id=3)
    parallel.prepare(there, model, replace(TRAINING, compile=compile_), None)
    assert len(calls) == started
