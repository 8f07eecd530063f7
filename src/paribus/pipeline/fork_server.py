"""A process that forks those of stages from itself, with the libraries that they compute with imported already.

Importing takes seconds a stage, of a small experiment more than half of its time. The server computes nothing, opens no
GPU and has no thread of Python, so that what it forks is what a process of its own would be after its imports.

`serve_forks` is started with the number of a Unix socket as argument. It ends with the process that started it, and
each child ends with the server.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from paribus.engine.processes import STOPPING, die_before_starter, die_with_parent, ignore_requests
from paribus.errors import ConfigurationError, classify, is_full_disk, log_text
from paribus.pipeline.graph import STAGES
from paribus.stage import ChannelListener, StageContext
from paribus.store.claims import Claim
from paribus.store.files import naming
from paribus.store.provenance import Code, loaded_code, pin_code

SIZE = struct.Struct("!Q")


class Request(NamedTuple):
    """One child, and its file descriptors."""

    fields: dict[str, Any]
    """A job, its environment, directory, imports and those to preload."""
    channel: int
    """The child answers on it."""
    log: int
    ready: int
    """The child closes it once it leads a session of its own."""


def serve_forks() -> int:
    """Serve until the socket closes or the code changes, and return 0; a child exits with the status of its stage."""
    die_with_parent()
    die_before_starter()
    ignore_requests()
    # A child gets the handlers that this process began with: nohup has it ignore SIGHUP. The server ignores what a
    # scheduler sends to every process of a job: a child may be writing its last checkpoint.
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in STOPPING}
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    loaded_code()  # read before the disk can change
    server = os.getpid()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        request = _serve(connection)
    if request is not None:
        _set_up_child(request, server, handlers)
        _exit(run_job(request.fields["job"], request.channel))
    return 0


def send(connection: socket.socket, fields: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """One message: its size, with the file descriptors, and JSON."""
    data = json.dumps(fields).encode()
    socket.send_fds(connection, [SIZE.pack(len(data))], descriptors)
    connection.sendall(data)


def receive(connection: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any], list[int]]:
    """The next message and what came with it; EOFError where the other side is gone."""
    head, descriptors_sent, _, _ = socket.recv_fds(connection, SIZE.size, descriptors)
    data = head + _exactly(connection, SIZE.size - len(head)) if head else b""
    if not data:
        raise EOFError
    return json.loads(_exactly(connection, SIZE.unpack(data)[0])), descriptors_sent


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces = list[bytes]()
    while size > 0:
        piece = connection.recv(size)
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _serve(connection: socket.socket) -> Request | None:
    """Fork a child for each request; return the request in the child, None in the server at its end or by new code."""
    known = len(sys.modules)
    with suppress(EOFError, OSError, ConfigurationError):
        while True:
            fields, (channel, log) = receive(connection, 2)
            code = Code(**fields["job"]["code"])
            pin_code(code)
            _redirect_output(log)
            for _ in _importing(fields["imports"]):
                pass
            if len(sys.modules) != known:
                code.require(Code.read())
                known = len(sys.modules)
            waiting, ready = os.pipe()
            # What is imported stays: a child that counted its references would copy the pages that they lie in.
            gc.freeze()
            child = os.fork()
            if child == 0:
                os.close(waiting)
                return Request(fields, channel, log, ready)
            for descriptor in (channel, log, ready):
                os.close(descriptor)
            os.read(waiting, 1)
            os.close(waiting)
            send(connection, {"pid": child})
            send(connection, {"ended": _wait_for(child, _importing(fields["preload"]))})
    return None


def _wait_for(child: int, idle: Iterator[None]) -> int:
    """Return how a child ended, as `Popen.returncode` has it; until then, take steps of `idle`."""
    for _ in idle:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _importing(modules: Iterable[str]) -> Iterator[None]:
    """Import modules, yielding after each; any failure is left to the child that needs the module."""
    for module in modules:
        with suppress(BaseException):
            importlib.import_module(module)
        yield


def _redirect_output(log: int) -> None:
    """Redirect what libraries print into the stage's log, as in the child."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)


def _set_up_child(request: Request, server: int, handlers: Mapping[int, Any]) -> None:
    """Set up session, environment, directory and signals, as if the process of the stage were started by itself."""
    fields, _, log, ready = request
    os.setsid()
    die_with_parent(server)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    os.close(ready)
    os.environ.clear()
    os.environ.update(fields["environment"])
    os.chdir(fields["directory"])
    os.close(log)
    leave_finalizers()
    # Read again: modules that this process imports from now on are those on the disk of now.
    loaded_code.cache_clear()


def leave_finalizers() -> None:
    """Let modules that were imported before the fork not clean up at exit: PyTorch unregisters operators one by one."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def _exit(code: int) -> NoReturn:
    """Exit as Python does, but without freeing imports, which takes most of the time of a small stage."""
    with suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def run_stage() -> int:
    """Run the job on standard input, and answer on the descriptor of the argument; 0 when the stage returned."""
    die_with_parent()
    die_before_starter()
    ignore_requests()
    return run_job(json.load(sys.stdin), int(sys.argv[1]))


def run_job(job: dict[str, Any], descriptor: int) -> int:
    """Run a job in this process, which has no other, and answer on a file descriptor; 0 when the stage returned."""
    with os.fdopen(descriptor, "w", encoding="utf-8") as channel:
        listener = ChannelListener(channel, sys.stderr)
        try:
            listener.send({"type": "done", "result": _run(job, listener)})
        except BaseException as error:
            # Told first: on a full disk the log takes nothing.
            listener.send({"type": "failed", **classify(error), "full_disk": is_full_disk(error)})
            with suppress(OSError):
                print(log_text(error), end="", file=sys.stderr, flush=True)  # noqa: T201
            return 1
    return 0


def _run(job: dict[str, Any], listener: ChannelListener) -> Any:
    claim = job["claim"]
    # The parent may be stopped (Ctrl-Z) while this goes on: then nobody else may take the work for abandoned.
    Claim(Path(claim["path"]), claim["token"], claim["lease"], _stop_at_once).beat()
    pin_code(Code(**job["code"]))
    context = StageContext.of_job(job, listener)
    with context.engine, naming(context.output.parent):
        return STAGES[job["stage"]].build(context)


def _stop_at_once() -> None:
    """Die with all workers: somebody else makes the artefact, and goes on with the same resumable work."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
