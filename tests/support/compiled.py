"""What PyTorch is asked to compile, recorded and left uncompiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch._inductor import compile_fx


@contextmanager
def recorded_symbolic() -> Iterator[list[bool]]:
    """Of each graph that is to be compiled here, whether it is for any size of an input, not for one alone.

    Sizes that were compiled in this process before count no more, and nothing that is left uncompiled stays behind.
    """
    found: list[bool] = []

    def compiled(graph: Any, inputs: Any, **_: Any) -> Any:
        sizes = [size for one in inputs for size in getattr(one, "shape", (one,))]
        found.append(any(isinstance(size, torch.SymInt) for size in sizes))
        return graph

    torch.compiler.reset()
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(compile_fx, "compile_fx", compiled)
            yield found
    finally:
        torch.compiler.reset()
