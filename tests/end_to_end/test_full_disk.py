"""A disk that fills up in the middle of a run: a clear error, no half artefact, and the same command carries on."""

import subprocess
from pathlib import Path

from command_line import OVERRIDES, paribus, write_corpus


def test_a_full_disk_fails_the_run_and_the_same_command_carries_on(tmp_path: Path, small_disk: Path) -> None:
    write_corpus(tmp_path)
    arguments = ("run", *OVERRIDES, f"root={small_disk / 'root'}")
    failed = paribus(tmp_path, *arguments, expect=1)
    assert "disk is full" in " ".join(failed.stdout.split())
    for path in (small_disk / "root/artifacts").glob("*/*/"):
        if path.parent.name not in ("claims", "partial"):
            assert (path / "record.json").is_file()
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    assert "1 of 1 run done" in paribus(tmp_path, *arguments).stdout
