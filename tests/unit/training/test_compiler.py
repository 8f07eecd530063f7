"""What compiled layers need beside PyTorch, and what becomes of a training without it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.training import fit
from paribus.training.parallel import arithmetic, compiles, why_not_compiled

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
AUTO = TrainingConfig(compile="auto")


def has(monkeypatch: pytest.MonkeyPatch, *programs: str, headers: Path) -> None:
    """A machine with these programs, and Python's headers in a directory."""
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(fit.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(fit.sysconfig, "get_path", lambda name: str(headers))


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    (tmp_path / "Python.h").touch()
    return tmp_path


@pytest.mark.parametrize("program", ["gcc", "clang"])
def test_a_gpu_compiles_by_itself_where_there_is_what_triton_needs(
    program: str, headers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, program, headers=headers)
    assert compiles(AUTO, GPU) and not compiles(AUTO, CPU)
    assert not compiles(replace(AUTO, compile="never"), GPU)
    assert why_not_compiled(AUTO, GPU) is None


@pytest.mark.parametrize(("programs", "named"), [((), "a C compiler"), (("gcc",), "Python.h")])
def test_without_it_a_training_goes_on_uncompiled_and_says_what_is_not_here(
    programs: tuple[str, ...], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, *programs, headers=tmp_path)
    assert not compiles(AUTO, GPU)
    told = why_not_compiled(AUTO, GPU)
    assert told is not None and named in told and told.endswith("is not here")
    assert why_not_compiled(AUTO, CPU) is None
    assert why_not_compiled(replace(AUTO, compile="never"), GPU) is None


def test_trainings_in_bfloat16_that_round_otherwise_are_told_apart() -> None:
    assert arithmetic("H100", "bf16", compiled=False, shared=True) == "H100 in bf16"
    assert arithmetic("H100", "bf16", compiled=True, shared=False) == "H100 in bf16, compiled"
    assert arithmetic("H100", "bf16", compiled=True, shared=True) == "H100 in bf16, compiled with shared weights"
    assert arithmetic("H100", "fp32", compiled=True, shared=True) == "H100 in fp32"
