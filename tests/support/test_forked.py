"""Commands of tests, which are forked with the imports done: they are what an interpreter of their own would be."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import OVERRIDES, command
from support.forked import Forked, run

SCRIPT = """import os, sys, paribus
print(sys.argv, os.getcwd(), os.environ.get("TOLD"), __name__, sys.path[0])
print(paribus.__file__, file=sys.stderr)
sys.exit(sys.argv[1] if len(sys.argv) > 1 else 3)
"""


@pytest.mark.parametrize(
    "arguments", [("--version",), ("runs",), ("plan", *OVERRIDES), ("plan", *OVERRIDES, "modell.width=3"), ("status",)]
)
def test_a_forked_command_says_and_ends_like_one_of_its_own(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.jsonl").write_text('{"text": "all else being equal"}\n')
    own = subprocess.run(command(arguments), cwd=tmp_path, capture_output=True, text=True, check=False)
    forked = run(["-m", "paribus", *arguments], cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (own.returncode, own.stdout, own.stderr)


@pytest.mark.parametrize("words", [(), ("told at the end",)])
def test_a_forked_script_sees_what_one_of_its_own_sees(words: tuple[str, ...], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    own = subprocess.run(
        [sys.executable, script, *words],
        cwd=tmp_path,
        env={"TOLD": "yes"},
        capture_output=True,
        text=True,
        check=False,
    )
    forked = run([str(script), *words], cwd=tmp_path, env={"TOLD": "yes"})
    assert (forked.returncode, forked.stdout, forked.stderr) == (own.returncode, own.stdout, own.stderr)


def test_a_forked_script_that_is_killed_or_raises_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(60)\n")
    process = Forked([str(script)])
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.communicate(10) == ("", "")
    assert process.returncode == -signal.SIGKILL
    script.write_text("raise KeyError('this')\n")
    done = run([str(script)])
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'this'\n")
