"""Signals that end a command, and those that the user had it ignore."""

import subprocess
import sys

import pytest

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
    ("before", "number", "told"),
    [("default", "SIGHUP", "is stopped"), ("default", "SIGTERM", "is stopped"), ("ignored", "SIGHUP", "goes on")],
)
def test_a_closed_terminal_stops_a_command_unless_it_was_started_to_outlive_it(
    before: str, number: str, told: str
) -> None:
    done = subprocess.run([sys.executable, "-c", HEEDS, before, number], capture_output=True, text=True, check=True)
    assert done.stdout == f"{told}\n"
