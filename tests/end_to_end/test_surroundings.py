"""Runs amid what a user's directory, terminal and pipes may be."""

import subprocess
import sys
from pathlib import Path

from support.command_line import OVERRIDES, write_corpus


def test_no_process_imports_a_file_of_the_user_that_is_named_like_a_module(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    for name in ("numbers", "tokenize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of the user')")
    command = [sys.executable, "-P", "-m", "paribus", "run", *OVERRIDES, "until=vocabulary", "engine.workers=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 of 1 run done up to vocabulary" in done.stdout
