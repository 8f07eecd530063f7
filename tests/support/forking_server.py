"""Runs Python programs in forks of itself, with PyTorch and the modules of all stages imported already.

Started as `python -m support.forking_server FD` with a Unix socket; `support.forked` is the other end.
"""

import gc
import importlib
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

from paribus.engine.processes import die_with_parent
from paribus.pipeline import execute, fork_server
from paribus.pipeline.fork_server import receive, send
from paribus.pipeline.graph import STAGES
from paribus.stage import OFFLINE
from support.forked import MEMBER

OTHERS = (
    "paribus.cli", "paribus.commands.verbs", "paribus.checks", "paribus.planning.show",
    "paribus.reporting.report", "paribus.training.launch",
    "matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
)  # fmt: skip


def main() -> None:
    """Serve until the socket is closed; a program's end is told by its status as `Popen.returncode` has it."""
    die_with_parent()
    for module in (*OTHERS, *(module for stage in STAGES.values() for module in stage.imports)):
        importlib.import_module(module)
    gc.freeze()
    wakened, wakening = os.pipe()
    os.set_blocking(wakening, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakening)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        while True:
            ready, _, _ = select.select([connection, wakened], [], [])
            if wakened in ready:
                os.read(wakened, 4096)
                _tell_ended(connection)
            if connection in ready:
                try:
                    asked, streams = receive(connection, 2)
                except EOFError:
                    return
                if (pid := os.fork()) == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for descriptor in (wakened, wakening):
                        os.close(descriptor)
                    connection.close()
                    _run(asked, streams)
                for stream in streams:
                    os.close(stream)
                send(connection, {"pid": pid})


def _tell_ended(connection: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            send(connection, {"ended": ended[0], "code": os.waitstatus_to_exitcode(ended[1])})


def _run(asked: Mapping[str, Any], streams: list[int]) -> NoReturn:
    """Be the program that was asked for, and have what it starts itself be forks from before it did anything."""
    fork_server.leave_finalizers()
    for stream, place in zip(streams, (1, 2), strict=True):
        os.dup2(stream, place)
        os.close(stream)
    _stages_from(_Idle(_serve_stages))
    _members_from([_Idle(_be_member) for _ in range(asked["members"])])
    _be_python(asked["words"], asked["environment"], asked["directory"])


def _be_python(words: list[str], environment: Mapping[str, str], directory: str) -> NoReturn:
    """Do what `python WORDS` does: -m and a module, -c and a program, or a script."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    of_module, of_text = words[0] == "-m", words[0] == "-c"
    sys.argv = words[1:] if of_module else ["-c", *words[2:]] if of_text else words
    own = directory if of_module or of_text else str(Path(words[0]).resolve().parent)
    sys.path[:0] = [own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    code: Any = 0
    try:
        if of_module:
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif of_text:
            exec(words[1], {"__name__": "__main__"})
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)  # noqa: T201
    fork_server._exit(code if isinstance(code, int) else int(code is not None))


def _stages_from(idle: "_Idle") -> None:
    begin = execute._ForkServer.start

    def start(environment: Mapping[str, str]) -> execute._ForkServer:
        if idle.told:
            return begin(environment)
        idle.tell({"environment": dict(environment)})
        return execute._ForkServer(idle, idle.connection)  # type: ignore[arg-type]

    execute._ForkServer.start = start  # type: ignore[method-assign, assignment]


def _serve_stages(told: Mapping[str, Any], connection: socket.socket) -> NoReturn:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for place in (0, 1, 2):
        os.dup2(nowhere, place)
    os.environ.clear()
    os.environ.update(told["environment"] | OFFLINE)
    sys.argv = ["fork_server", str(connection.detach())]
    os._exit(fork_server.serve_forks())


def _members_from(idle: "list[_Idle]") -> None:
    """Have PyTorch's agent start the processes of a group from these, as long as there are some."""
    begin = SubprocessHandler._popen

    def start(handler: SubprocessHandler, words: tuple[str, ...], environment: dict[str, str]) -> Any:
        if not idle or words[0] != sys.executable:
            return begin(handler, words, environment)
        member = idle.pop()
        member.tell({"words": words[1:], "environment": environment, "directory": str(Path.cwd())})
        return member

    SubprocessHandler._popen = start  # type: ignore[method-assign, assignment]


def _be_member(told: Mapping[str, Any], connection: socket.socket) -> NoReturn:
    os.setsid()
    connection.close()
    Path("/proc/self/comm").write_text(f"{MEMBER}{told['environment'].get('RANK', '')}")
    _be_python(told["words"], told["environment"], told["directory"])


class _Idle:
    """A child that waits for what it is told, and is then what the program starts: as far as that asks, a `Popen`."""

    def __init__(self, work: Callable[[Mapping[str, Any], socket.socket], NoReturn]) -> None:
        self.told = False
        self._code: int | None = None
        self.connection, theirs = socket.socketpair()
        parent = os.getpid()
        if (pid := os.fork()) == 0:
            self.connection.close()
            die_with_parent(parent)
            try:
                told, _ = receive(theirs)
            except EOFError:
                os._exit(0)
            work(told, theirs)
        self.pid = pid
        theirs.close()

    def tell(self, fields: dict[str, Any]) -> None:
        self.told = True
        send(self.connection, fields)

    def poll(self) -> int | None:
        if self._code is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self._code = os.waitstatus_to_exitcode(ended[1])
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("python", timeout or 0)
            time.sleep(0.005)
        return self._code or 0

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
