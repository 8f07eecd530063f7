"""The GPUs of this machine, shared by count among the jobs on it.

A job locks the file of each GPU that it uses, so that the lock ends with the process, however that ends. Whoever waits
for GPUs holds the queue's lock meanwhile: those who come later, wanting fewer, do not overtake it for ever.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paribus.errors import ConfigurationError

SECONDS_BETWEEN_LOOKS = 0.5
VISIBLE = "CUDA_VISIBLE_DEVICES"


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
    names = [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")]
    return [Gpu(name, known[name].uuid if name in known else name) for name in names]


def _listed() -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return [Gpu(*(field.strip() for field in line.split(",", 1))) for line in lines if "," in line]


def lock_directory() -> Path:
    """Where the jobs of all users of this machine lock its GPUs."""
    return Path(tempfile.gettempdir()) / "paribus-gpus"


@contextmanager
def reserved(
    count: int, gpus: Sequence[Gpu], directory: Path, waiting: Callable[[], None]
) -> Iterator[tuple[Gpu, ...]]:
    """Hold `count` of `gpus`, or all of them for 0, until the block ends; `waiting` is called once if none is free yet.

    ConfigurationError when there are not as many.
    """
    wanted = count or len(gpus)
    if wanted > len(gpus):
        raise ConfigurationError(
            f"training.processes: {count} need a GPU each, but this job sees {len(gpus)}; lower it or give the job more"
        )
    _make_shared(directory)
    with ExitStack() as stack:
        with ExitStack() as queue:
            waited = not _try_lock(queue, directory / "queue")
            if waited:
                waiting()
                _lock(queue, directory / "queue")
            while (taken := _take(stack, gpus, wanted, directory)) is None:
                if not waited:
                    waiting()
                waited = True
                time.sleep(SECONDS_BETWEEN_LOOKS)
        yield taken


def _make_shared(directory: Path) -> None:
    try:
        directory.mkdir()
    except FileExistsError:
        return
    directory.chmod(0o1777)


def _take(stack: ExitStack, gpus: Sequence[Gpu], wanted: int, directory: Path) -> tuple[Gpu, ...] | None:
    """Lock as many as wanted, or none."""
    taken: list[Gpu] = []
    with ExitStack() as attempt:
        for gpu in gpus:
            if len(taken) < wanted and _try_lock(attempt, directory / gpu.uuid):
                taken.append(gpu)
        if len(taken) < wanted:
            return None
        stack.enter_context(attempt.pop_all())
    return tuple(taken)


def _try_lock(stack: ExitStack, path: Path) -> bool:
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    stack.callback(os.close, descriptor)
    return True


def _lock(stack: ExitStack, path: Path) -> None:
    descriptor = _open(path)
    stack.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _open(path: Path) -> int:
    """A file to lock, which another user may have made; never one behind a link that somebody put there."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
