"""What PyTorch is asked to compile, recorded and left uncompiled."""

from typing import Any

import pytest
import torch
from torch._inductor import compile_fx


def record_symbolic(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each graph that is to be compiled from here on, whether it is for any size of an input, not for one alone."""
    found: list[bool] = []

    def compiled(graph: Any, inputs: Any, **_: Any) -> Any:
        sizes = [size for one in inputs for size in getattr(one, "shape", (one,))]
        found.append(any(isinstance(size, torch.SymInt) for size in sizes))
        return graph

    monkeypatch.setattr(compile_fx, "compile_fx", compiled)
    return found
