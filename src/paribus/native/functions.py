"""The decorators of the functions that kernels call.

numba optimizes every compiled function by itself, emits machine code for it, and does so again for whatever calls it,
down to the kernel: half of the time that compiling takes. Here a function is only lowered, and linked into what calls
it as it is; the kernel alone is optimized and emitted, with all that it calls. Functions are called by kernels alone,
so they have no wrappers for Python either, which may call their `py_func`.
"""

import ctypes
from typing import Any

import numba
from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _LoweredCode(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """A function with all that it calls, neither optimized nor emitted."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    """As numba's own, but that nothing is made ready to be called from Python."""

    _name = "paribus_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _LoweredCode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, library = state.cr, state.library
        described = lowered.fndesc
        # Callers find a function by an object that stands for it in Python.
        name, kept = described.qualname.rsplit(".", 1)[-1], (library,)
        standing = _dynfunc.make_function(
            described.lookup_module(), name, "for kernels alone", _refusal(), lowered.env, kept
        )
        state.targetctx.insert_user_function(standing, described, [library])
        state.cr = _LowerResult(described, lowered.call_helper, cfunc=standing, env=lowered.env)
        return True


class _FunctionCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler with that lowering in place of its own."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_Lowering if kind is NativeLowering else kind, description) for kind, description in passes.passes
        ]
        passes.finalize()
        return [passes]


def _refusal() -> int | None:
    """Address of what is run where Python calls a function after all: it raises TypeError and returns NULL."""
    return ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value


_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
function = numba.njit(pipeline_class=_FunctionCompiler, **_OPTIONS)
inline = numba.njit(pipeline_class=_FunctionCompiler, forceinline=True, **_OPTIONS)
separate = numba.njit(**_OPTIONS)
"""As numba does it: emitting a loop leaves it in another form to be linked, which is sometimes the faster one."""
