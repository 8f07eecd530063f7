"""Claims: at most one process makes an artefact, as long as it lives.

A claim is a file made in one step. Its holder touches it (the heartbeat); a claim whose holder is dead, or that has
been silent for its lease, is taken over. The lease stands in the claim: its holder beats by it, and whoever judges
the claim may be configured with another. A holder that lost its claim must not publish.
"""

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from paribus.errors import InfrastructureError
from paribus.store import files
from paribus.store.files import file_time_ns

Process = Mapping[str, str | int | float]
"""`host` for people, `machine` for comparisons, `pid`, and `started` in clock ticks since boot."""
GONE = 0.0
"""`started` of a process that has ended, a zombie included; a process records it of itself where /proc is hidden."""


class ClaimLostError(InfrastructureError):
    """Another process took the claim over; what was made under it must not be published."""


class Claim:
    """A held claim; a context manager that beats while it is open and releases at the end."""

    def __init__(self, path: Path, token: str, lease: float, lost: Callable[[], None] | None = None) -> None:
        """`lost` is called, by another thread, when a heartbeat finds that somebody else has the claim."""
        self.path, self.token, self.lease, self._lost = path, token, lease, lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="claim-heartbeat")

    def held(self) -> bool:
        """True if this process still holds the claim."""
        holder = read_holder(self.path)
        return holder is not None and holder.get("token") == self.token

    def check(self) -> None:
        """Raise ClaimLostError unless this process still holds the claim."""
        if not self.held():
            holder = read_holder(self.path)
            raise ClaimLostError(
                f"the claim {self.path.name} was taken over by {describe(holder)}; nothing was published"
            )

    def watch(self) -> None:
        """Check the claim during work, but let a file server fail to answer: it may answer before the lease is over."""
        with suppress(OSError):
            self.check()

    def beat(self) -> None:
        """Keep the claim alive from now on, until its release or the end of this process."""
        self._thread.start()

    def __enter__(self) -> Self:
        self.beat()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        # Looking and removing is one step: between the two somebody could take over, whose claim this would remove.
        with exclusive(self.path.parent):
            if self.held():
                self.path.unlink()

    def _beat(self) -> None:
        # Several beats may be lost, to a slow file server say, before anybody takes the holder for dead.
        while not self._stop.wait(self.lease / 5):
            try:
                held = self.held()
                if held:
                    os.utime(self.path)
            except FileNotFoundError:  # taken over, and released by now
                held = False
            except OSError:  # the file server may answer again before the lease is over
                continue
            if not held:
                # No more beats: they would keep alive the claim of whoever has it now.
                if self._lost is not None:
                    self._lost()
                return


def acquire(path: Path, lease: float) -> Claim | None:
    """The claim at `path`, held for `lease` seconds after each heartbeat; None while a living process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Judging a claim dead and replacing it is one step.
    with exclusive(path.parent):
        if path.exists() and not _is_dead(path, lease):
            return None
        token = uuid.uuid4().hex
        files.write_json(path, {"token": token, "lease": lease, **this_process()})
        return Claim(path, token, lease)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, for what must be one step of all threads and processes that write there."""
    with (directory / ".lock").open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_claim(root: Path, run_id: str) -> Path:
    """Path of the claim on a run, below an output root."""
    return root / "claims" / run_id


def is_held(path: Path, lease: float) -> bool:
    """True if a living process holds the claim at `path`."""
    return path.exists() and not _is_dead(path, lease)


def read_holder(path: Path) -> dict[str, str | int | float] | None:
    """Host, process and token of the holder; None when nobody holds the claim, empty when it is torn."""
    try:
        holder = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def describe(holder: dict[str, str | int | float] | None) -> str:
    """The holder for people: `process 123 on node7`."""
    if holder is None:
        return "nobody"
    return f"process {holder.get('pid')} on {holder.get('host')}" if holder else "a process whose claim is torn"


def _is_dead(path: Path, lease: float) -> bool:
    """True if nobody keeps the claim alive; `lease` is that of a claim too torn to name its own."""
    holder = read_holder(path)
    if holder is None:
        return False
    stated = holder.get("lease")
    # A process of this machine that has ended is known at once; of one elsewhere only silence tells.
    return is_gone(holder) or _silence(path) > (stated if isinstance(stated, int | float) and stated > 0 else lease)


def _silence(path: Path) -> float:
    """Seconds since the last heartbeat by the clock that stamps it, whatever the clocks of the nodes say.

    A claim from the future, since that clock was set back, counts as one from now: its holder goes on beating, or is
    dead a lease later.
    """
    try:
        now = file_time_ns(path.parent)
    except OSError:  # in a store that this process may only read it takes no claim, and asks who works there
        now = time.time_ns()
    try:
        silence = now - path.stat().st_mtime_ns
        if silence < 0:
            os.utime(path)
    except OSError:
        return 0.0
    return silence / 1e9


def this_process() -> dict[str, str | int | float]:
    """Identity of this process, by which others tell whether it still lives."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "machine": machine(), "pid": pid, "started": _started(pid) or GONE}


def machine() -> str:
    """The boot and the PID namespace in which process numbers of this process mean something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def is_gone(process: Mapping[str, Any]) -> bool:
    """True if a process of this machine has ended; False for one of another machine, which cannot be seen."""
    if process.get("machine") != machine():
        return False
    started = _started(process.get("pid"))
    return started == GONE or started not in (None, process.get("started"))


def is_of_another_boot(process: Mapping[str, Any]) -> bool:
    """True if a process belongs to another boot of a host of this name, so that it has ended, unless two hosts share
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
    """True if the kernel knows the number: /proc mounted with hidepid has no entry for others' processes."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, TypeError, OverflowError):
        return False
    return True
