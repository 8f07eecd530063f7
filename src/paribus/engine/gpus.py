"""The GPUs of this machine, shared by count among the jobs on it.

A job locks the file of each GPU that it uses, so that the lock ends with the process, however that ends. Who finds too
few free GPUs holds none and looks again. Nobody writes to a lock file, which another user may have made, and no link in
its place is followed.
"""

import errno
import fcntl
import itertools
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paribus.errors import ConfigurationError

SECONDS_BETWEEN_LOOKS = 0.5
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Makes CUDA number GPUs as nvidia-smi does, by which jobs know them; its default begins with the fastest."""
CUBLAS = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Environment that a process must have before CUDA begins, for cuBLAS to add in one order."""
NCCL = {"NCCL_NVLS_ENABLE": "0"}
"""Variables of NCCL for the same: the switches of a node, where they do the sums, follow no order.

PyTorch sets this itself only for groups that begin under deterministic algorithms.
"""
_LOOKING = "looking"


@dataclass(frozen=True)
class Gpu:
    """`name` is what CUDA_VISIBLE_DEVICES calls it in this process, `uuid` what it is called in every process."""

    name: str
    uuid: str


def visible_gpus() -> list[Gpu]:
    """The GPUs that this process may use: those that the driver lists, restricted by CUDA_VISIBLE_DEVICES.

    A scheduler that hides devices makes the driver list fewer, and numbers begin at 0 again in each of its jobs; so
    jobs know GPUs by their UUIDs.
    """
    listed = _listed()
    chosen = os.environ.get(VISIBLE)
    if chosen is None:
        return listed
    known = {gpu.name: gpu for gpu in listed} | {gpu.uuid: gpu for gpu in listed}
    # CUDA takes the names up to the first that is none: -1, NoDevFiles or a number that is not there hide the rest.
    # Where the driver lists none, any number may be one.
    names = itertools.takewhile(
        lambda name: name in known or name.startswith(("GPU-", "MIG-")) or (not known and name.isdecimal()),
        map(str.strip, chosen.split(",")),
    )
    return [Gpu(name, known[name].uuid if name in known else name) for name in names]


def _listed() -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return [Gpu(*(field.strip() for field in line.split(",", 1))) for line in lines if "," in line]


def unseen(pytorch: str, cuda: str | None) -> str | None:
    """Reason why a PyTorch that sees no GPU should see one; None where the machine has none.

    `pytorch` is its version, `cuda` the version of CUDA that it is built for, if any. The result is None too where
    CUDA_VISIBLE_DEVICES hides all GPUs, since that is how one asks for a CPU.
    """
    gpus = visible_gpus()
    if not gpus or not _listed():
        return None
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    versions = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    driver = versions[0] if versions else "of unknown version"
    count = "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
    built = f"is built for CUDA {cuda}, which this driver may be too old for" if cuda else "is built without CUDA"
    return (
        f"auto would compute on the CPU of a machine whose driver ({driver}) lists {count}: PyTorch {pytorch} {built}; "
        "install a build for this driver (https://pytorch.org/get-started), or say cpu"
    )


@contextmanager
def reserved(
    count: int, gpus: Sequence[Gpu], directory: Path, waiting: Callable[[], None]
) -> Iterator[tuple[Gpu, ...]]:
    """Hold `count` of `gpus`, or all of them for 0, until the block ends; `waiting` is called once if none is free yet.

    All jobs that share the GPUs lock files in `directory`. ConfigurationError when there are not as many GPUs.
    """
    needed = count or len(gpus)
    if needed > len(gpus):
        raise ConfigurationError(
            f"training.processes: {count} need a GPU each, but this job sees {len(gpus)}; lower it or give the job more"
        )
    with suppress(FileExistsError):
        directory.mkdir(parents=True)
        directory.chmod(0o1777)  # every user may make files there, and none may remove another's
    with ExitStack() as stack:
        taken = _take(stack, gpus, needed, directory)
        if taken is None:
            waiting()
        while taken is None:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            taken = _take(stack, gpus, needed, directory)
        yield taken


def _take(stack: ExitStack, gpus: Sequence[Gpu], needed: int, directory: Path) -> tuple[Gpu, ...] | None:
    """Lock `needed` of these GPUs until `stack` is left; None, and none is locked, where fewer are free."""
    # Looking and taking is one step of all jobs, and an attempt that finds too few unlocks all before it ends: two jobs
    # that each held a part of what both need would wait for each other for ever.
    with ExitStack() as looking, ExitStack() as attempt:
        _lock(looking, directory / _LOOKING, fcntl.LOCK_EX)
        free = (gpu for gpu in gpus if _lock(attempt, directory / gpu.uuid, fcntl.LOCK_EX | fcntl.LOCK_NB))
        taken = tuple(itertools.islice(free, needed))
        if len(taken) < needed:
            return None
        stack.enter_context(attempt.pop_all())
    return taken


def _lock(stack: ExitStack, path: Path, operation: int) -> bool:
    """Lock a file until `stack` is left; False where another process has locked it and `operation` says not to wait.

    OSError for a link, and for what is no file and would block.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o644)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o644)  # whatever the umask: others must be able to lock it
    with ExitStack() as opened:
        opened.callback(os.close, descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no file", str(path))
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            return False
        stack.push(opened.pop_all())
    return True
