"""The GPUs of this machine, shared by count among the jobs on it.

A job locks the file of each GPU that it uses, so that the lock ends with the process, however that ends. Whoever waits
keeps a ticket: a locked file that says which GPUs would do and how many are wanted. Jobs are served in the order of
their tickets, so that those who come later, wanting fewer, do not overtake others for ever; but a ticket holds up only
jobs that want the GPUs it will get.
"""

import errno
import fcntl
import itertools
import json
import math
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from paribus.errors import ConfigurationError

SECONDS_BETWEEN_LOOKS = 0.5
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER: Mapping[str, str] = MappingProxyType({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
"""Has CUDA number GPUs as nvidia-smi does, by which jobs know them; by itself it begins with the fastest."""
CUBLAS: Mapping[str, str] = MappingProxyType({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})
"""What the environment of a process must say before CUDA begins, for cuBLAS to add in one order."""
NCCL: Mapping[str, str] = MappingProxyType({"NCCL_NVLS_ENABLE": "0"})
"""The same for NCCL: the switches of a node, where they sum themselves, do so in no order.

PyTorch asks it of NCCL under deterministic algorithms, but of groups that begin under them only.
"""
_PREFIX = "ticket-"
_LOOKING = "queue"
_UUID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What is no path: a file is named by it."""
_LONGEST = 100_000


@dataclass(frozen=True)
class Gpu:
    """`name` is what CUDA_VISIBLE_DEVICES calls it in this process, `uuid` what it is called in every process."""

    name: str
    uuid: str


def visible_gpus() -> list[Gpu]:
    """The GPUs that this process may use: those the driver lists, of these the ones in CUDA_VISIBLE_DEVICES.

    A scheduler that hides devices makes the driver list fewer, and numbers begin at 0 again in each of its jobs; so
    jobs know GPUs by their UUIDs.
    """
    listed = _listed()
    chosen = os.environ.get(VISIBLE)
    if chosen is None:
        return listed
    known = {gpu.name: gpu for gpu in listed} | {gpu.uuid: gpu for gpu in listed}
    # CUDA takes the names up to the first that is none: -1, NoDevFiles or a number that is not there hide the rest.
    names = itertools.takewhile(lambda name: _may_be(name, known), map(str.strip, chosen.split(",")))
    return [Gpu(name, known[name].uuid if name in known else name) for name in names]


def _may_be(name: str, known: Mapping[str, Gpu]) -> bool:
    """Whether a name is one of a GPU, or of a part of one; where the driver lists none, any number."""
    return name in known or name.startswith(("GPU-", "MIG-")) or (not known and name.isdecimal())


def _listed() -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return [Gpu(*(field.strip() for field in line.split(",", 1))) for line in lines if "," in line]


def unseen(pytorch: str, cuda: str | None) -> str | None:
    """Why a PyTorch that sees no GPU, of this version and built for `cuda` or None, should; None where there is none.

    None too where CUDA_VISIBLE_DEVICES hides them all, since that is how one asks for a CPU.
    """
    gpus, driver = visible_gpus(), _driver()
    if not gpus or driver is None:
        return None
    count = "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
    built = f"is built for CUDA {cuda}, which this driver may be too old for" if cuda else "is built without CUDA"
    return (
        f"auto would compute on the CPU of a machine whose driver ({driver}) lists {count}: PyTorch {pytorch} {built}; "
        "install a build for this driver (https://pytorch.org/get-started), or say cpu"
    )


def _driver() -> str | None:
    """The version of the driver, None where it lists no GPU."""
    if not _listed():
        return None
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return lines[0] if lines else "of unknown version"


@contextmanager
def reserved(
    count: int, gpus: Sequence[Gpu], directory: Path, waiting: Callable[[], None]
) -> Iterator[tuple[Gpu, ...]]:
    """Hold `count` of `gpus`, or all of them for 0, until the block ends; `waiting` is called once if none is free yet.

    All jobs that share the GPUs lock files in `directory`. ConfigurationError when there are not as many GPUs.
    """
    wanted = count or len(gpus)
    if wanted > len(gpus):
        raise ConfigurationError(
            f"training.processes: {count} need a GPU each, but this job sees {len(gpus)}; lower it or give the job more"
        )
    make_shared(directory)
    with ExitStack() as stack:
        # Without a ticket a job is behind all who have one.
        taken = _take(stack, gpus, wanted, directory, math.inf)
        if taken is None:
            with Ticket.drawn(directory, wanted, [gpu.uuid for gpu in gpus]) as ticket:
                waiting()  # with a place in the queue, so that who is told of it overtakes nobody
                while (taken := _take(stack, gpus, wanted, directory, ticket.number)) is None:
                    time.sleep(SECONDS_BETWEEN_LOOKS)
        yield taken


def _take(stack: ExitStack, gpus: Sequence[Gpu], wanted: int, directory: Path, number: float) -> tuple[Gpu, ...] | None:
    """Lock as many as wanted of those that no earlier ticket than `number` is to get, or none."""
    taken: list[Gpu] = []
    # Locks of an attempt that finds too few are let go before anybody else looks: two jobs that each held a part of
    # what both want would wait for each other for ever.
    with looking(directory), ExitStack() as attempt:
        kept = promised([ticket for ticket in tickets(directory) if ticket.number < number], directory)
        for gpu in gpus:
            if len(taken) < wanted and gpu.uuid not in kept and try_lock(attempt, directory / gpu.uuid):
                taken.append(gpu)
        if len(taken) < wanted:
            return None
        # Kept by the caller from here on, until its stage is done.
        stack.enter_context(attempt.pop_all())
    return tuple(taken)


# The files by which jobs of one machine, of any user, wait for GPUs in turn: locks, and tickets of those who wait.
#
# Nobody writes to a file that another user has made, and nobody trusts one: it is read, or locked, and no link in its
# place is followed. A ticket counts as long as its lock is held, so it ends with its process.
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
