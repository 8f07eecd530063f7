"""What becomes of the workers of a process that is killed while it maps."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.waiting import wait_until

MAP = """
import sys
from pathlib import Path
from paribus.engine.local import LocalEngine
from support.engine_functions import Task, write_pid
if __name__ == "__main__":
    numbers = range(0, 8, 2) if sys.argv[2] == "idle" else range(4)
    for _ in LocalEngine(2).map(write_pid, [Task(Path(sys.argv[1]), number) for number in numbers]):
        if sys.argv[2] == "idle":
            sys.stdin.readline()
"""
SUPPORT = str(Path(__file__).resolve().parents[1])


@pytest.mark.parametrize("workers", ["idle", "working"])
def test_workers_end_with_the_process_that_wants_their_results(workers: str, tmp_path: Path) -> None:
    """They would keep memory and cores, and write to what the next attempt writes to."""
    starter = subprocess.Popen(
        [sys.executable, "-c", MAP, str(tmp_path), workers],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([SUPPORT, os.environ.get("PYTHONPATH", "")])},
        stdin=subprocess.PIPE,
    )
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2, seconds=60)
    begun = [psutil.Process(int(path.stem)) for path in tmp_path.glob("*.pid")]
    servers = [process.parent() for process in begun]
    starter.kill()
    starter.wait()
    wait_until(lambda: not any(process.is_running() for process in (*begun, *servers) if process), seconds=20)


def test_a_process_whose_starter_died_before_it_could_ask_ends_itself() -> None:
    """Importing takes seconds, in which whoever started it may be killed."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    program = "import sys; from paribus.engine.processes import die_with_parent; die_with_parent({}); print('lives')"
    done = subprocess.run([sys.executable, "-c", program.format(gone.pid)], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")
    done = subprocess.run([sys.executable, "-c", program.format(os.getpid())], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"lives\n")


# Signals that end a command, and those that the user had it ignore.

HEEDS = """
import os, signal, sys
from paribus.engine.processes import interrupt, on_stop
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "ignored" else signal.SIG_DFL)
on_stop(interrupt)
try:
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    print("goes on")
except KeyboardInterrupt:
    print("is stopped")
"""


@pytest.mark.parametrize(
    ("before", "number", "printed"),
    [("default", "SIGHUP", "is stopped"), ("default", "SIGTERM", "is stopped"), ("ignored", "SIGHUP", "goes on")],
)
def test_a_closed_terminal_stops_a_command_unless_it_was_started_to_outlive_it(
    before: str, number: str, printed: str
) -> None:
    done = subprocess.run([sys.executable, "-c", HEEDS, before, number], capture_output=True, text=True, check=True)
    assert done.stdout == f"{printed}\n"
