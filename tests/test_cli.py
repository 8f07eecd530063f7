"""A reader of the output that goes away, as `head` does, or a disk without room for it, is no crash."""

import os
import subprocess
import sys

import pytest

FULL = "paribus: what was printed could not be written: No space left on device\n"


@pytest.mark.parametrize("argument", ["--help", "--version", "explain"])
@pytest.mark.parametrize(("closed", "status", "errors"), [(True, 0, ""), (False, 1, FULL)])
def test_a_text_that_nobody_can_read_leaves_no_traceback(argument: str, closed: bool, status: int, errors: str) -> None:
    reading, writing = os.pipe() if closed else (os.open("/dev/full", os.O_WRONLY) for _ in range(2))
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "paribus", argument], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (status, errors)
