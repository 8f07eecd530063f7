"""The kernels and their signatures, readable without numba."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """Where a kernel's code is and the types of its arguments; every kernel returns an int64.

    Types: `i64`, `f64`, and pointers `u8*`, `i32*`, `i64*`, `u64*`, `f64*`.
    """

    module: str
    arguments: tuple[str, ...]


def _signature(module: str, arguments: str) -> Signature:
    return Signature(module, tuple(arguments.split()))


KERNELS: dict[str, Signature] = {
    "pretoken_starts": _signature("scan", "u8* i64 i64 u8* u64* i64 u64* u8* i64*"),
}
