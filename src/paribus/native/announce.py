"""Compile the kernels of a stage before it needs them, and say so, since that takes a while on a machine."""

from collections.abc import Iterable
from typing import Protocol

from paribus.native.loader import ensure_compiled


class BuildReporter(Protocol):
    """Where a stage says how far it is."""

    def progress(self, done: float, total: float, *, unit: str, doing: str) -> None:
        """`done` of `total` `unit`s are finished; `doing` says what is running."""


def compile_kernels(names: Iterable[str], report: BuildReporter) -> None:
    """Compile those of these kernels, as `registry` has them, that this machine has not compiled yet."""

    def progress(name: str, done: int, total: int) -> None:
        report.progress(done, total, unit="kernels", doing=f"compiling {name}")

    ensure_compiled(names, progress)
