"""Processes that carry out a stage together: how many, what each runs, how they wait for each other, and signals.

`launch` starts a process on DIRECTORY and REQUESTS. It reads the frozen job in DIRECTORY, and in REQUESTS what signals
ask of its agent: a checkpoint (SIGUSR1), or a checkpoint and the end (SIGTERM). The main process writes the stage's
result into DIRECTORY, a failing one what went wrong. They wait for each other on the host, for as long as all of them
live.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event, Thread
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed

from paribus.config.groups.training import TrainingConfig
from paribus.config.identity import to_plain
from paribus.config.schema import divided
from paribus.engine.processes import die_with_parent, ignore_requests
from paribus.errors import (
    ConfigurationError,
    InterruptedRunError,
    classify,
    is_full_disk,
    stopped_as_meant,
)
from paribus.stage import JSON, ChannelListener, SilentListener, StageContext, StageListener, deliver
from paribus.store.files import read_object, write_json
from paribus.store.provenance import Code, loaded_code, pin_code


@dataclass(frozen=True)
class Processes:
    """`a_node` processes on each of `nodes` nodes."""

    a_node: int
    nodes: int

    @property
    def total(self) -> int:
        return self.a_node * self.nodes


def resolve_processes(training: TrainingConfig) -> Processes:
    """The processes of a run on this machine and in this allocation.

    Raises ConfigurationError for more than there are GPUs, for a global batch that they cannot share evenly, and where
    they are no multiple of `training.shard_processes`.
    """
    nodes = training.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    processes = Processes(training.processes or _visible_devices(training.device), nodes)
    visible = torch.cuda.device_count()
    if _is_gpu(training.device) and processes.a_node > visible:
        raise ConfigurationError(
            f"training.processes is {processes.a_node}, but {visible} CUDA devices are visible; lower it, or set "
            "training.device=cpu"
        )
    (path, contexts), total, shards = divided(training), processes.total, training.shard_processes
    if contexts % total:
        raise ConfigurationError(
            f"{path} is {contexts}, which {total} processes cannot share evenly; change {path} or training.processes"
        )
    if shards and total % shards:
        raise ConfigurationError(
            f"training.shard_processes is {shards}, of which no groups make up {total} processes; take a divisor of "
            f"{total}, such as the processes of a node, or 0 for all"
        )
    return processes


def beside(asked: int | None, device: str, training: TrainingConfig, path: str) -> Processes:
    """The processes, on one node, of a stage after the training: `asked` on `device` by the field `path`.

    On GPUs None means as many as train, at most those visible, and 0 one a visible GPU; on a CPU either means one.
    Raises ConfigurationError for more than there are GPUs.
    """
    if not _is_gpu(device):
        return Processes(asked or 1, 1)
    visible = 1 if ":" in device else _visible_devices(device)
    if asked is None:
        return Processes(min(training.processes or visible, visible), 1)
    if asked > visible:
        raise ConfigurationError(f"{path} is {asked}, and {visible} CUDA devices are visible to it; lower it")
    return Processes(asked or visible, 1)


def _is_gpu(device: str) -> bool:
    return device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())


def _visible_devices(device: str) -> int:
    return max(1, torch.cuda.device_count()) if _is_gpu(device) else 1


class PendingRequests(NamedTuple):
    """Requests since they were last answered."""

    save: bool
    stop: bool


class Requests:
    """Requests by signals to this process and, in `file`, to the agent that started it.

    A step is not broken off: a request waits until it is taken.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._received, self._taken = file, bytearray(), 0

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Collect requests by signals in the block; must be entered by the main thread."""
        with (
            _signals_handled(lambda number: self._received.extend(ASKED_BY[number])),
            # The file announces that signals are handled, so it is created once they are.
            NamedTemporaryFile(prefix=STEPPING, dir=self._file.parent) if self._file else nullcontext(),
        ):
            yield

    def take(self) -> PendingRequests:
        """Requests since the last call."""
        # Exchanged at once: a signal may come between any two statements.
        received, self._received = self._received, bytearray()
        requests = bytes(received) + self._read()
        return PendingRequests(SAVE in requests, STOP in requests)

    def wait_for_others(self) -> None:
        """Wait while processes that the same agent started take steps, or write the checkpoint that they end with."""
        while self._file and any(self._file.parent.glob(f"{STEPPING}*")):
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _read(self) -> bytes:
        if self._file is None or not self._file.exists():
            return b""
        requests = self._file.read_bytes()[self._taken :]
        self._taken += len(requests)
        return requests


Work = Callable[[StageContext, int, Requests], dict[str, JSON]]
"""Function from the context, the number of processes and requests to a result; the main process' is the stage's."""


def run_worker(work: Work, *, all_report: bool = False) -> int:
    """Do `work` in this process and return 0; only the main process reports, unless `all_report`.

    A process that fails ends here, with 1: at the end of the interpreter CUDA and NCCL may wait for the other processes
    of the group, and these for it to be gone.
    """
    die_with_parent(int(os.environ[AGENT]))
    ignore_requests()
    directory, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    try:
        job = read_object(directory / JOB)
        pin_code(Code(**job["code"]))
        listener: StageListener = SilentListener()
        if all_report or rank == 0:
            listener = ChannelListener((directory / REPORTS).open("a", encoding="utf-8"))
        processes = job["processes_a_node"] * job["nodes"]
        result = work(StageContext.of_job(job, listener), processes, Requests(Path(sys.argv[2])))
        if rank == 0:
            write_json(directory / RESULT, result)
    except BaseException as error:
        report_failure(directory, f"process {rank}", error)
        with suppress(OSError):  # a full disk takes no traceback
            # A stop is reported in one line, by the process that started the group.
            if not stopped_as_meant(error):
                traceback.print_exc()
            sys.stderr.flush()
        os._exit(1)
    return 0


AGENT = "PARIBUS_AGENT"
"""Environment variable with the number of the process that started this one."""
JOB, RESULT, REPORTS = "job.json", "result.json", "reports.jsonl"
SECONDS_BETWEEN_LOOKS = 0.2


def write_job(directory: Path, context: StageContext, processes: Processes, **rendezvous: str) -> None:
    """Write the job that every process of the group reads."""
    job = {
        "code": vars(loaded_code()),
        "config": to_plain(context.config),
        "inputs": {name: str(path) for name, path in context.inputs.items()},
        "output": str(context.output),
        "work": str(context.work),
        "processes_a_node": processes.a_node,
        "nodes": processes.nodes,
        **rendezvous,
    }
    write_json(directory / JOB, job)


def main_program(module: str) -> str:
    """Program for `python -c` that calls `main` of a module, which by `python -m` would exist twice."""
    return f"from {module} import main; raise SystemExit(main())"


def report_failure(directory: Path, who: str, error: BaseException) -> None:
    """Write what went wrong in `who`, a process or an agent, for the process that started the group."""
    failure = classify(error)
    message = f"{failure['message']} ({who})"
    name = f"failed_{who.replace(' ', '_')}.json"
    fields = {"time": time.time(), "class": failure["class"], "message": message, "full_disk": is_full_disk(error)}
    write_json(directory / name, fields)


def read_failures(directory: Path) -> list[dict[str, Any]]:
    """The failures of a group by time; those that report only that a machine or a peer failed come last."""
    failures = map(read_object, directory.glob("failed_*.json"))
    return sorted(failures, key=lambda failure: (failure["class"] == "infrastructure", failure["time"]))


@contextmanager
def forwarded(path: Path, listener: StageListener) -> Iterator[None]:
    """Deliver to `listener`, from a thread, what a `ChannelListener` writes to `path`; all of it by the block's end."""
    path.touch()
    ended = Event()

    def follow() -> None:
        with path.open(encoding="utf-8") as lines:
            pending, last = "", False
            while not last:
                last = ended.wait(SECONDS_BETWEEN_LOOKS)
                *complete, pending = (pending + lines.read()).split("\n")
                for line in complete:
                    deliver(json.loads(line), listener)

    thread = Thread(target=follow, name="reports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


PATIENCE = timedelta(days=7)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Host:
    """One of the processes of a stage, as the host sees it.

    They wait by gloo whatever they compute on. A collective of the GPUs that waits for the main process to read a
    corpus or to write an artefact would end the training after its timeout, and keep the GPUs busy until then; under
    gloo, the end of a process ends the waiting of all.
    """

    main: bool
    group: Any
    """Process group of gloo; None where there is one process."""
    writers: Any = None
    """Process group of the threads that write checkpoints while the processes do other work."""

    def gathered_by_writers(self, digests: dict[str, str]) -> dict[str, str]:
        """Digests by the writing threads of all processes; waits for all of them."""
        return {name: value for part in _gather(digests, self.writers) for name, value in part.items()}

    @property
    def rank(self) -> int:
        """Number of this process; the main one is 0."""
        return 0 if self.group is None else torch.distributed.get_rank(self.group)

    @property
    def size(self) -> int:
        """Number of processes."""
        return 1 if self.group is None else torch.distributed.get_world_size(self.group)

    def gathered(self, value: Result) -> list[Result]:
        """Values of all processes, in order of rank."""
        return _gather(value, self.group)

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.group is not None:
            torch.distributed.barrier(group=self.group)

    def agreed(self, claims: Sequence[bool]) -> list[bool]:
        """True for each claim that any process makes, the same in all; clocks and signals differ from node to node."""
        if self.group is None:
            return list(claims)
        agreed = torch.tensor(claims, dtype=torch.uint8)
        torch.distributed.all_reduce(agreed, torch.distributed.ReduceOp.MAX, group=self.group)
        return [bool(claim) for claim in agreed]


def _gather(value: Result, group: Any) -> list[Result]:
    if group is None:
        return [value]
    results: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(results, value, group=group)
    return results


ALONE = Host(main=True, group=None)
"""The host of a stage in one process."""


def join_host(accelerator: Any) -> Host:
    """Join the other processes; all must do so before any of them makes the others wait."""
    several = accelerator.num_processes > 1
    groups = [torch.distributed.new_group(backend="gloo", timeout=PATIENCE) if several else None for _ in range(2)]
    return Host(accelerator.is_main_process, *groups)


@contextmanager
def joined_by_gloo() -> Iterator[Host]:
    """Join, for the block, processes that compute by themselves and exchange numbers on the host alone."""
    torch.distributed.init_process_group("gloo", timeout=PATIENCE)
    try:
        group: Any = torch.distributed.group.WORLD
        host = Host(torch.distributed.get_rank() == 0, group)
        yield host
        host.wait()
    finally:
        torch.distributed.destroy_process_group()


SAVE, STOP = b"s", b"t"
ASKED_BY: Mapping[int, bytes] = {signal.SIGUSR1: SAVE, signal.SIGTERM: STOP}
STEPPING = "stepping_"
"""Prefix of the name of a file beside the requests that tells agents that a process takes steps and heeds them."""


@contextmanager
def passed_on(file: Path) -> Iterator[None]:
    """Append requests by signals in the block to `file`, for the `Requests` of the processes that this one started.

    While none of these takes steps there is nothing to save: SIGTERM raises InterruptedRunError here.
    """

    def write(number: int) -> None:
        if number == signal.SIGTERM and not any(file.parent.glob(f"{STEPPING}*")):
            raise InterruptedRunError("stopped by a signal while no step was taken")
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(descriptor, ASKED_BY[number])
        os.close(descriptor)

    with _signals_handled(write):
        yield


@contextmanager
def _signals_handled(handle: Callable[[int], None]) -> Iterator[None]:
    def handler(number: int, frame: FrameType | None) -> None:
        handle(number)

    before: dict[int, Any] = {number: signal.signal(number, handler) for number in ASKED_BY}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
