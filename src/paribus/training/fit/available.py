"""How much memory a process may still take: of its GPU, or of the host within the limits of its control groups."""

from collections.abc import Iterator
from pathlib import Path

import torch

from paribus.modeling.device import free_gpu_bytes

ROOT = Path("/")


def available_bytes(device: torch.device, processes: int, root: Path = ROOT) -> int | None:
    """Free bytes of `device` for each of `processes` on this node; None where the system does not say."""
    if device.type == "cuda":
        return free_gpu_bytes(device)
    host = available_host_bytes(root)
    return None if host is None else host // processes


def gpu_bytes(device: torch.device) -> int | None:
    """All memory of a GPU; None for a CPU."""
    return int(torch.cuda.mem_get_info(device)[1]) if device.type == "cuda" else None


def peak_bytes(device: torch.device) -> int:
    """The most bytes of tensors that this process had at once on a GPU; 0 on a CPU, where nobody counts them."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0


def forget_peak(device: torch.device) -> None:
    """Let `peak_bytes` count from here on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def available_host_bytes(root: Path = ROOT) -> int | None:
    """What the system can give without swapping, or what is left in the narrowest control group, if that is less.

    Cached files count as free, since they are dropped. `root` is where `proc` and `sys` are.
    """
    try:
        lines = (root / "proc" / "meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    values = {name: int(value.split()[0]) * 1024 for name, value in (line.split(":", 1) for line in lines)}
    return min([values["MemAvailable"], *_left_in_groups(root)])


def _left_in_groups(root: Path) -> Iterator[int]:
    """Bytes left in each limited control group above this process, of version 1 or 2."""
    for directory in _groups(root):
        limit = _number(directory / "memory.max") or _number(directory / "memory.limit_in_bytes")
        used = _number(directory / "memory.current") or _number(directory / "memory.usage_in_bytes")
        if limit is not None and used is not None:
            yield max(0, limit - used + _cached(directory / "memory.stat"))


def _groups(root: Path) -> Iterator[Path]:
    """Directories of this process' groups and those above; in a container, what it can see of them."""
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, controllers, name in (line.split(":", 2) for line in lines):
        mounted = root / "sys" / "fs" / "cgroup"
        if controllers and "memory" not in controllers.split(","):
            continue
        top = mounted / "memory" if controllers else mounted
        yield from dict.fromkeys([top / name.lstrip("/"), *(top / parent.lstrip("/") for parent in _above(name))])


def _above(name: str) -> list[str]:
    return [str(parent) for parent in Path(name).parents]


def _number(path: Path) -> int | None:
    """The number in a file; None where there is no such file, and for `max`."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _cached(path: Path) -> int:
    """Bytes of files that a group keeps in memory and does not use."""
    try:
        pairs = dict(line.split() for line in path.read_text(encoding="ascii").splitlines())
    except OSError:
        return 0
    return int(pairs.get("total_inactive_file", pairs.get("inactive_file", 0)))
