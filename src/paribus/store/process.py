"""Which process this is, and whether another one is known to be gone.

A process number means something in one PID namespace of one boot of one host alone: a container has numbers of its own,
also where it has the host's name.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Process = Mapping[str, str | int | float]
"""`host` for people, `machine` for comparisons, `pid`, and `started` in clock ticks since boot."""
GONE = 0.0


def this_process() -> dict[str, str | int | float]:
    """This process as others may judge it."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "machine": machine(), "pid": pid, "started": _started(pid) or GONE}


def machine() -> str:
    """The boot and the PID namespace in which process numbers of this process mean something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def is_gone(process: Mapping[str, Any]) -> bool:
    """Whether a process has surely ended; False for one of another machine, of which nothing is known here."""
    if process.get("machine") != machine():
        return False
    started = _started(process.get("pid"))
    return started == GONE or started not in (None, process.get("started"))


def is_of_another_boot(process: Mapping[str, Any]) -> bool:
    """Whether a process belongs to another boot of a host of this name, so that it has ended, unless two hosts share
    the name; False where its boot is not known.
    """
    boot = str(process.get("machine", "")).partition(" ")[0]
    return process.get("host") == socket.gethostname() and boot not in ("", machine().partition(" ")[0])


def _started(pid: Any) -> float | None:
    """When a process started, so that a reused number is noticed; GONE if there is none, None if that is hidden."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if _exists(pid) else GONE
    except PermissionError:
        return None
    return GONE if fields[0] == "Z" else float(fields[19])


def _exists(pid: Any) -> bool:
    """Whether the kernel knows the number: /proc mounted with hidepid has no entry for processes of other users."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, TypeError, OverflowError):
        return False
    return True
