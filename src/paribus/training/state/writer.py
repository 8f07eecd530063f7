"""Writes checkpoints in a thread, so that training goes on meanwhile."""

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from paribus.training.processes.host import Host
from paribus.training.state.checkpoint import Checkpoints
from paribus.training.state.metrics import MetricsFile
from paribus.training.state.snapshot import Snapshot
from paribus.training.state.spent import Spent


class CheckpointWriter:
    """Writes one checkpoint at a time; leaving the block waits for the last one."""

    def __init__(self, checkpoints: Checkpoints, metrics: MetricsFile, host: Host) -> None:
        self._checkpoints, self._metrics, self._host = checkpoints, metrics, host
        self._pool = ThreadPoolExecutor(1, "checkpoints")
        self._pending: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()
        if error is None:
            self.finish()

    def write(self, step: int, snapshot: Snapshot, spent: Spent) -> None:
        """Write the checkpoint after `step` steps once the one before it is written."""
        self.finish()
        self._pending = self._pool.submit(self._write, step, snapshot, spent)

    def finish(self) -> None:
        """Wait for the checkpoint that is being written, and raise what went wrong with it."""
        if self._pending:
            self._pending.result()

    def check(self) -> None:
        """Raise what went wrong with the checkpoint that was written last, if that is known already."""
        if self._pending and self._pending.done():
            self._pending.result()

    def _write(self, step: int, snapshot: Snapshot, spent: Spent) -> None:
        if self._host.main:
            self._metrics.sync()
        self._checkpoints.save(step, snapshot, spent, self._host)
