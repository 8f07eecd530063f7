"""The files by which jobs of one machine, of any user, wait for GPUs in turn: locks, and tickets of those who wait.

Nobody writes to a file that another user has made, and nobody trusts one: it is read, or locked, and no link in its
place is followed. A ticket counts as long as its lock is held, so it ends with its process.
"""

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "ticket-"
_LOOKING = "queue"
_UUID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What is no path: a file is named by it."""
_LONGEST = 100_000


@dataclass(frozen=True)
class Ticket:
    """A place in the queue: `wanted` GPUs of those in `uuids`, which are taken in this order."""

    number: int
    wanted: int
    uuids: tuple[str, ...]

    @classmethod
    @contextmanager
    def drawn(cls, directory: Path, wanted: int, uuids: Sequence[str]) -> Iterator["Ticket"]:
        """A ticket behind all others, until the block ends."""
        with ExitStack() as stack:
            with looking(directory):
                number = 1 + max((_number(path) for path in _files(directory)), default=0)
                path = directory / f"{_PREFIX}{number:012d}"
                aside = directory / f".{path.name}.{os.getpid()}"
                aside.write_text(json.dumps({"wanted": wanted, "uuids": list(uuids)}), encoding="utf-8")
                aside.chmod(0o644)
                # Locked before it has the name of a ticket, because one without a lock is removed by whoever sees it.
                if not try_lock(stack, aside):
                    raise BlockingIOError(f"{aside}: locked by another process")
                aside.rename(path)
            # Removed before its lock is: who finds it without one removes it too, and another may draw its number.
            stack.callback(path.unlink, missing_ok=True)
            yield cls(number, wanted, tuple(uuids))


def tickets(directory: Path) -> list[Ticket]:
    """Those of living processes, in the order in which they were drawn; the others are removed, if this user may."""
    found = []
    for path in sorted(_files(directory), key=_number):
        # A lock that this process can take is nobody's: the one who waited is dead.
        with ExitStack() as stack, suppress(OSError):  # a link, or what is no file, is no ticket
            if try_lock(stack, path):
                with suppress(OSError):
                    path.unlink()
            elif ticket := _read(path):
                found.append(ticket)
    return found


def promised(waiting: Sequence[Ticket], directory: Path) -> set[str]:
    """The free GPUs that go to those who wait: to each in turn as many as it wants, or all that would do for it."""
    kept: set[str] = set()
    for ticket in waiting:
        open_ = (uuid for uuid in ticket.uuids if uuid not in kept and _is_free(directory / uuid))
        kept.update(uuid for uuid, _ in zip(open_, range(ticket.wanted), strict=False))
    return kept


@contextmanager
def looking(directory: Path) -> Iterator[None]:
    """Look at locks and tickets and take some, which is one step of all jobs."""
    descriptor = _open(directory / _LOOKING)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make_shared(directory: Path) -> None:
    """Make the directory of the files, in which every user may make some and none may remove another's."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        return
    directory.chmod(0o1777)


def try_lock(stack: ExitStack, path: Path) -> bool:
    """Lock a file until `stack` is left; False where another process has locked it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    stack.callback(os.close, descriptor)
    return True


def _is_free(path: Path) -> bool:
    """Whether nobody has locked a GPU; for a ticket of another user no file is made."""
    with ExitStack() as stack:
        return not path.exists() or try_lock(stack, path)


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdecimal())


def _number(path: Path) -> int:
    return int(path.name.removeprefix(_PREFIX))


def _read(path: Path) -> Ticket | None:
    """None for what is no ticket: another user may have put anything there."""
    try:
        with open(_open(path), "rb") as file:
            fields = json.loads(file.read(_LONGEST))
        uuids = tuple(map(str, fields["uuids"]))
        return Ticket(_number(path), int(fields["wanted"]), uuids) if all(map(_UUID.fullmatch, uuids)) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open(path: Path) -> int:
    """A file to lock, which another user may have made; OSError for a link, and for what is no file and would block."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o644)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o644)  # whatever the umask: others must be able to lock it
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no file", str(path))
    return descriptor
