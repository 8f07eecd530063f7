"""The clock and the memory of a training loop, which says when a step is done."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from loops.turn import Turn

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"


class Mark(NamedTuple):
    """A moment: seconds of the clock, and of the processors for all threads of this process."""

    clock: float = 0.0
    processor: float = 0.0

    @classmethod
    def now(cls) -> "Mark":
        """This moment."""
        return cls(time.perf_counter(), time.process_time())


@dataclass
class Watch:
    """Seconds of windows of `window` steps, after `warmup` of all `steps`.

    The device has finished at the end of each window. Nothing waits for it between: loops that let it lag behind keep
    that advantage. With a `turn`, processes that do the same number of steps measure a window after one another.
    """

    device: torch.device
    warmup: int
    steps: int
    window: int
    turn: Turn | None = None
    waited: float = 0.0
    """Seconds spent waiting for the device at the ends of windows."""
    idle: float = 0.0
    """Seconds spent between windows: waiting for the turn, and in here."""
    peak: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    _done: int = 0
    _began: Mark = field(default_factory=Mark)
    _windows: list[float] = field(default_factory=list)
    _processor: float = 0.0

    @property
    def measuring(self) -> bool:
        """Whether warm-up is over and the last step is not done."""
        return self.warmup <= self._done < self.steps

    @property
    def over(self) -> bool:
        """Whether the last step is done."""
        return self._done >= self.steps

    def step(self) -> None:
        """A step is done."""
        self._done += 1
        if self._done < self.warmup or (self._done - self.warmup) % self.window:
            return
        began = time.perf_counter()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.waited += time.perf_counter() - began
        if self._done > self.warmup:
            now = Mark.now()
            self._windows.append((now.clock - self._began.clock) / self.window)
            self._processor += now.processor - self._began.processor
        ended = time.perf_counter()
        self._take_turns()
        self.peak = peak_bytes(self.device)
        self.idle += time.perf_counter() - ended
        self._began = Mark.now()

    def _take_turns(self) -> None:
        if self._done == self.warmup:
            if self.turn:
                # Nobody measures before all have come so far: the first time round is no more than that.
                self.turn.wait()
                self.turn.hand_on()
                self.turn.wait()
            reset_peak(self.device)
        elif self.turn:
            self.turn.hand_on()
            if self._done < self.steps:
                self.turn.wait()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose seconds count for `part`; waiting for the device in it counts for the step."""

        def timed(*arguments: Any, **named: Any) -> Any:
            measuring, waited, idle, began = self.measuring, self.waited, self.idle, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                if measuring:
                    waited = self.waited - waited
                    self._add(part, time.perf_counter() - began - waited - (self.idle - idle))
                    self._add("step", waited)

        return timed

    def _add(self, part: str, seconds: float) -> None:
        self.parts[part] = self.parts.get(part, 0.0) + seconds

    def measured(self) -> dict[str, Any]:
        """Seconds a step of each window, all seconds, of processors too, the parts that were timed, and peak memory."""
        return {
            "seconds": self._windows,
            "whole": sum(self._windows) * self.window,
            "processor": self._processor,
            "steps": len(self._windows) * self.window,
            "parts": self.parts,
            "peak": self.peak,
        }


def reset_peak(device: torch.device) -> None:
    """Forget the peak of memory so far."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif CLEAR.exists():
        CLEAR.write_text(RESET_PEAK, encoding="utf-8")


def peak_bytes(device: torch.device) -> float | None:
    """The most memory since then: allocated on a GPU; on a CPU the process's own, without pages of files."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    if not STATUS.exists():
        return None
    said = dict(line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines())
    resident, file = (int(said[name].split()[0]) * 1024 for name in ("VmHWM", "RssFile"))
    return float(resident - file)
