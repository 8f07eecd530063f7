"""The clock and the memory of a training loop, which says when a step is done."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"


class Watch:
    """Seconds of windows of `window` steps, after `warmup` of all `steps`.

    The device has finished at the end of each window. Nothing waits for it between: loops that let it lag behind keep
    that advantage.
    """

    def __init__(self, device: torch.device, warmup: int, steps: int, window: int) -> None:
        self._device, self._warmup, self._steps, self._window = device, warmup, steps, window
        self._done = 0
        self._marks: list[float] = []
        self._processor: list[float] = []
        self.waited = 0.0
        """Seconds spent waiting for the device at the ends of windows."""
        self.peak: float | None = None
        self.parts: dict[str, float] = {}

    @property
    def measuring(self) -> bool:
        """Whether warm-up is over and the last step is not done."""
        return self._warmup <= self._done < self._steps

    def step(self) -> None:
        """A step is done."""
        self._done += 1
        if self._done < self._warmup or (self._done - self._warmup) % self._window:
            return
        began = time.perf_counter()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        self.waited += now - began
        if not self._marks:
            reset_peak(self._device)
            now = time.perf_counter()
        self._marks.append(now)
        self._processor.append(time.process_time())
        self.peak = peak_bytes(self._device)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose seconds count for `part`; waiting for the device in it counts for the step."""

        def timed(*arguments: Any, **named: Any) -> Any:
            measuring, waited, began = self.measuring, self.waited, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                if measuring:
                    waited = self.waited - waited
                    self._add(part, time.perf_counter() - began - waited)
                    self._add("step", waited)

        return timed

    def _add(self, part: str, seconds: float) -> None:
        self.parts[part] = self.parts.get(part, 0.0) + seconds

    def measured(self) -> dict[str, Any]:
        """Seconds a step of each window, all seconds, of processors too, the parts that were timed, and peak memory."""
        marks = self._marks
        windows = [(end - start) / self._window for start, end in pairwise(marks)]
        return {
            "seconds": windows,
            "whole": marks[-1] - marks[0],
            "processor": self._processor[-1] - self._processor[0],
            "steps": len(windows) * self._window,
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
