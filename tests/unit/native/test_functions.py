"""Functions that kernels call are not emitted by themselves."""

import numpy as np
import pytest

from paribus.native.build import compile_kernel
from paribus.native.registry import KERNELS


def test_a_function_is_emitted_only_with_a_kernel_that_calls_it() -> None:
    compile_kernel("grow_table", KERNELS["grow_table"])
    from paribus.tokenization.kernels.keys import hash_words

    (compiled,) = hash_words.overloads.values()
    assert not compiled.library.codegen._engine.is_symbol_defined(compiled.fndesc.llvm_func_name)


def test_python_may_not_call_a_function_of_kernels() -> None:
    compile_kernel("grow_table", KERNELS["grow_table"])
    from paribus.tokenization.kernels.keys import hash_words

    with pytest.raises(TypeError):
        hash_words(np.uint64(1), np.uint64(2))
