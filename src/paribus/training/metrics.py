"""Metrics and time that a training keeps, and the peaks of devices that its utilisation is measured against.

`metrics.jsonl` has a line a step, in order, holding only what the run's identity determines.
"""

import json
import math
import os
import re
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import TextIO


class MetricsFile:
    """An append-only file of the metrics of steps 1, 2, ...; line n is step n.

    It stays open between steps; every line is written at once, so another process reads it whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: TextIO | None = None
        path.touch()

    def complete_steps(self) -> int:
        """Steps from the first on whose lines are whole."""
        with self.path.open("rb") as lines:
            return sum(1 for _ in takewhile(_is_whole, enumerate(lines, start=1)))

    def truncate(self, steps: int) -> None:
        """Keep the lines of the first `steps` steps."""
        with self.path.open("rb+") as lines:
            for _ in range(steps):
                lines.readline()
            lines.truncate(lines.tell())

    def append(self, step: int, values: dict[str, float]) -> None:
        """Add the line of 1-based `step`."""
        if self._open is None:
            self._open = self.path.open("a", encoding="utf-8", buffering=1)
        self._open.write(json.dumps({"step": step, **values}) + "\n")

    def at(self, step: int, name: str) -> int:
        """The whole number that a metric has at 1-based `step`, 0 where that lacks it or is 0."""
        with self.path.open("rb") as lines:
            line = next(islice(lines, step - 1, None), b"{}") if step else b"{}"
        return int(json.loads(line).get(name, 0))

    def recent(self, name: str) -> float:
        """Mean of a metric over the last twentieth of the steps that have it, at least one; a batch is mostly noise."""
        with self.path.open(encoding="utf-8") as lines:
            values = [float(values[name]) for values in map(json.loads, lines) if name in values]
        recent = values[-max(1, len(values) // 20) :]
        return math.fsum(recent) / len(recent)

    def sync(self) -> None:
        """Return once everything appended is on the disk; may be called from another thread."""
        with self.path.open("rb") as lines:
            os.fsync(lines.fileno())

    def close(self) -> None:
        """Release the file until something is appended again."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _is_whole(numbered: tuple[int, bytes]) -> bool:
    step, line = numbered
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return line.endswith(b"\n") and isinstance(value, dict) and value.get("step") == step


@dataclass(frozen=True)
class Spent:
    """Time until a step, over all parts of a training: it may go on in another number of processes."""

    seconds: float = 0.0
    """Seconds by the clock while it trained."""
    device_seconds: float = 0.0
    """Seconds summed over the devices, a process each, of every part."""

    @property
    def device_hours(self) -> float:
        return self.device_seconds / 3600

    def later(self, seconds: float, devices: int) -> "Spent":
        """After so many more seconds on so many devices."""
        return Spent(self.seconds + seconds, self.device_seconds + seconds * devices)


PEAK_FLOPS = (
    (("MIG",), None),  # a part of a device has a part of its peak
    (("B200",), 2_250e12),
    (("GB200",), 2_500e12),
    (("GH200",), 989e12),
    (("H200", "NVL"), 835e12),
    (("H200",), 989e12),
    (("H100", "PCIe"), 756e12),
    (("H100", "NVL"), 835e12),
    (("H100",), 989e12),
    (("H800",), 989e12),
    (("H20",), 148e12),
    (("A100",), 312e12),
    (("A800",), 312e12),
    (("A40",), 149.7e12),
    (("A10",), 125e12),
    (("L40S",), 362e12),
    (("L40",), 181e12),
    (("L4",), 121e12),
    (("MI300X",), 1_307e12),
)
"""Words of a device's name, and its FLOP/s; the first line of which a name has all words counts.

FLOP/s are those of dense bfloat16 matrix products, as makers state them. It is the same peak whatever precision a run
computes in, so that utilisations can be compared; a run in float32 simply uses little of it."""


def peak_flops(device: str) -> float | None:
    """Peak FLOP/s of a device by its name, such as `NVIDIA H100 80GB HBM3` or `h100`; None for an unknown one."""
    words = set(re.split(r"[\s_-]+", device.upper()))
    return next((peak for named, peak in PEAK_FLOPS if words.issuperset(map(str.upper, named))), None)


def known_devices() -> list[str]:
    """Names of the devices with a known peak, as people write them: `h100_pcie`."""
    return ["_".join(named).lower() for named, peak in PEAK_FLOPS if peak is not None]
