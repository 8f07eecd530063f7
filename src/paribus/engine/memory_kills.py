"""Tell a process that the kernel killed for want of memory from one that somebody killed: both end by signal 9."""

from pathlib import Path

VMSTAT = Path("/proc/vmstat")


def out_of_memory_kills(counters: Path = VMSTAT) -> int:
    """Processes that the kernel of this machine has killed for want of memory since it started.

    Limits of control groups, which schedulers set, count too. 0 where the system keeps no such counter.
    """
    if not counters.is_file():
        return 0
    lines = (line.split() for line in counters.read_text(encoding="ascii").splitlines())
    return next((int(value) for name, value in lines if name == "oom_kill"), 0)
