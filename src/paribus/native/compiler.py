"""Compilation by numba: decorators of the functions that kernels call, what numba's Python subset lacks (pointers from
addresses, unaligned loads, bit counts, and 64-byte compares), and the kernels themselves.

numba optimizes every compiled function by itself, emits machine code for it, and does so again for whatever calls it,
down to the kernel: half of the time that compiling takes. Here a function is only lowered, and linked into what calls
it as it is; the kernel alone is optimized and emitted, with all that it calls. Functions are called by kernels alone,
so they have no wrappers for Python either, which may call their `py_func`.
"""

import ctypes
import importlib
from typing import Any

import numba
from llvmlite import ir
from numba import _dynfunc, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

from paribus.native.registry import KERNELS

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
separate = numba.njit(**_OPTIONS)
"""A compiled function of its own, linked as numba does it, which for a loop is sometimes faster."""
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTES = ir.VectorType(ir.IntType(8), 64)
u8p, i32p = types.CPointer(types.uint8), types.CPointer(types.int32)
i64p, u64p, f64p = types.CPointer(types.int64), types.CPointer(types.uint64), types.CPointer(types.float64)
f32p, u32p = types.CPointer(types.float32), types.CPointer(types.uint32)


class _LoweredCode(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """A function with all that it calls, neither optimized nor emitted."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    """numba's own lowering, but nothing is made ready to be called from Python."""

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


function = numba.njit(pipeline_class=_FunctionCompiler, **_OPTIONS)
inline = numba.njit(pipeline_class=_FunctionCompiler, forceinline=True, **_OPTIONS)


def _pointer(kind: Any) -> Any:
    @intrinsic
    def at(typing: Any, address: Any) -> Any:
        """The pointer of an address (int64)."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return at


u8_at, i32_at, i64_at = _pointer(u8p), _pointer(i32p), _pointer(i64p)
u64_at, f64_at = _pointer(u64p), _pointer(f64p)


@intrinsic
def address_of(typing: Any, pointer: Any) -> Any:
    """The address (int64) of a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(arguments[0], _I64)

    return types.int64(pointer), generate


@intrinsic
def load64(typing: Any, pointer: Any, index: Any) -> Any:
    """Eight bytes from any byte position, little-endian, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.gep(arguments[0], [arguments[1]])
        return builder.load(builder.bitcast(place, _I64.as_pointer()), align=1)

    return types.uint64(u8p, types.int64), generate


@intrinsic
def store64(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Write eight bytes to any byte position."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.gep(arguments[0], [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, _I64.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(u8p, types.int64, types.uint64), generate


@intrinsic
def copy16(typing: Any, target: Any, source: Any) -> Any:
    """Copy sixteen bytes between two addresses (int64)."""
    vector = ir.VectorType(ir.IntType(8), 16).as_pointer()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(builder.inttoptr(arguments[1], vector), align=1)
        builder.store(value, builder.inttoptr(arguments[0], vector), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Ask for the cache line at an address (int64) ahead of its use."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _I32, _I32, _I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [ir.IntType(8).as_pointer()], kind)
        # To be read (0), kept in all caches (3), data (1).
        builder.call(function, [place, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def call_with_place(typing: Any, function: Any, argument: Any, pointer: Any, index: Any) -> Any:
    """Result (int64) of the C function at an address, of an argument and of where pointer[index] lies."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_I64, [_I64, _I64.as_pointer()])
        place = builder.gep(arguments[2], [arguments[3]])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1], place])

    return types.int64(types.int64, types.int64, i64p, types.int64), generate


@intrinsic
def popcount(typing: Any, value: Any) -> Any:
    """Number of one bits of a uint64, as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest_bit(typing: Any, value: Any) -> Any:
    """Position of the lowest one bit of a uint64, as int64; 64 for zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


@intrinsic
def multiply_high(typing: Any, left: Any, right: Any) -> Any:
    """Upper 64 bits of the product of two uint64."""
    wide = ir.IntType(128)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), _I64)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def within16(typing: Any, pointer: Any, index: Any, low: Any, span: Any) -> Any:
    """Which of sixteen int32 from (pointer, index) are in [low, low + span): bit i of the uint64 is number i."""
    lanes = ir.VectorType(_I32, 16)

    def spread(builder: Any, value: Any) -> Any:
        first = builder.insert_element(ir.Constant(lanes, ir.Undefined), value, _I32(0))
        return builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), ir.Constant(lanes, [0] * 16))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.gep(arguments[0], [arguments[1]])
        values = builder.load(builder.bitcast(place, lanes.as_pointer()), align=4)
        shifted = builder.sub(values, spread(builder, arguments[2]))
        inside = builder.icmp_unsigned("<", shifted, spread(builder, arguments[3]))
        return builder.zext(builder.bitcast(inside, ir.IntType(16)), _I64)

    return types.uint64(i32p, types.int64, types.int32, types.int32), generate


def _splat(value: int) -> ir.Constant:
    return ir.Constant(_BYTES, [value] * 64)


def _load(builder: Any, arguments: Any) -> Any:
    place = builder.gep(arguments[0], [arguments[1]])
    return builder.load(builder.bitcast(place, _BYTES.as_pointer()), align=1)


def _mask(test: Any) -> Any:
    """An intrinsic that tests 64 bytes from (pointer, index) at once; bit i of the uint64 is byte i."""

    @intrinsic
    def mask(typing: Any, pointer: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(test(builder, _load(builder, arguments)), _I64)

        return types.uint64(u8p, types.int64), generate

    return mask


def _within(builder: Any, value: Any, low: int, high: int) -> Any:
    # One comparison for both bounds: without a sign, what is below `low` is a large number.
    shifted = builder.sub(value, _splat(low))
    return builder.icmp_unsigned("<=", shifted, _splat(high - low))


def _letters(builder: Any, value: Any) -> Any:
    # With this bit capitals become small letters, and nothing else becomes one.
    return _within(builder, builder.or_(value, _splat(0x20)), 0x61, 0x7A)


def _spaces(builder: Any, value: Any) -> Any:
    return builder.or_(_within(builder, value, 9, 13), builder.icmp_unsigned("==", value, _splat(0x20)))


ascii_letters = _mask(_letters)
ascii_digits = _mask(lambda builder, value: _within(builder, value, 0x30, 0x39))
ascii_spaces = _mask(_spaces)
blanks = _mask(lambda builder, value: builder.icmp_unsigned("==", value, _splat(0x20)))
apostrophes = _mask(lambda builder, value: builder.icmp_unsigned("==", value, _splat(0x27)))
not_ascii = _mask(lambda builder, value: builder.icmp_signed("<", value, _splat(0)))
continuations = _mask(lambda builder, value: builder.icmp_signed("<", value, _splat(-64)))
"""UTF-8 bytes that continue a character: as signed bytes, -128 to -65."""


_TYPES: dict[str, Any] = {
    "i64": types.int64, "u64": types.uint64, "f64": types.float64, "u8*": u8p, "u16*": types.CPointer(types.uint16),
    "i32*": i32p, "u32*": u32p, "f32*": f32p, "i64*": i64p, "u64*": u64p, "f64*": f64p,
}  # fmt: skip
"""Types by their names in `registry`."""


def compile_kernel(name: str) -> tuple[str, bytes]:
    """Compile one kernel with all it calls; returns its symbol and object code."""
    signature = KERNELS[name]
    module = importlib.import_module(signature.module)
    arguments = tuple(_TYPES[argument] for argument in signature.arguments)
    compiled = numba.njit(types.int64(*arguments), **_OPTIONS)(getattr(module, name))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def load_compiler() -> None:
    """Load what numba compiles with, which takes a second."""
    numba.njit(types.int64())(lambda: 0)
