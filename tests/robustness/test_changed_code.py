"""Code that is edited while a command runs: nothing is published under the keys of the code that it began with."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from support.command_line import OVERRIDES, command, write_text_files

CHECKOUT = Path(__file__).resolve().parents[2]


def checkout(directory: Path) -> Path:
    """A copy of the package and its configuration; its path for Python."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "src" / "paribus", directory / "src" / "paribus", ignore=ignored)
    for name in ("conf", "experiments"):
        shutil.copytree(CHECKOUT / name, directory / name)
    return directory / "src"


def test_a_run_whose_code_is_edited_publishes_nothing_more_and_says_what_changed(tmp_path: Path) -> None:
    write_text_files(tmp_path)
    source = checkout(tmp_path / "checkout")
    arguments = command(("run", *OVERRIDES, "tokenizer=bytes", "retries=2"))
    environment = os.environ | {"PYTHONPATH": str(source)}
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as running:
        artifacts = tmp_path / "paribus_runs" / "artifacts"
        while not list(artifacts.glob("corpus/*/record.json")):
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        with (source / "paribus" / "ordering" / "arrays.py").open("a", encoding="utf-8") as file:
            file.write("# another permutation\n")
        output = " ".join(running.communicate()[0].split())
    assert running.returncode == 1
    assert "configuration: the code changed while the command ran (ordering/arrays.py)" in output
    assert "trying again" not in output
    assert not list(artifacts.glob("order/*"))
    assert not list(artifacts.glob("training/*"))
