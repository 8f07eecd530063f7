"""A reader of the output that goes away, as `head` does, is no crash."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_a_text_that_nobody_reads_leaves_no_traceback(argument: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "paribus", argument], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
