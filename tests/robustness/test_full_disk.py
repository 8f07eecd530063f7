"""A disk that fills up in the middle of a run: a clear error, no half artefact, and the same command carries on."""

import re
import subprocess
from pathlib import Path

import pytest

from support.command_line import OVERRIDES, paribus, write_text_files


def test_a_full_disk_fails_the_run_and_the_same_command_carries_on(tmp_path: Path, small_disk: Path) -> None:
    write_text_files(tmp_path)
    arguments = ("run", *OVERRIDES, f"root={small_disk / 'root'}")
    failed = paribus(tmp_path, *arguments, expect=1)
    assert "disk is full" in " ".join(failed.stdout.split())
    assert "Traceback" not in failed.stdout
    for path in (small_disk / "root/artifacts").glob("*/*/"):
        if path.parent.name not in ("claims", "partial"):
            assert (path / "record.json").is_file()
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    assert "1 of 1 run done" in paribus(tmp_path, *arguments).stdout


@pytest.mark.parametrize("small_disk", [pytest.param("200k", marks=pytest.mark.slow), "40k"], indirect=True)
def test_a_disk_without_room_even_for_a_log_is_told_with_stage_and_place_and_filled_once(
    tmp_path: Path, small_disk: Path
) -> None:
    write_text_files(tmp_path)
    failed = paribus(tmp_path, "run", *OVERRIDES, f"root={small_disk / 'root'}", "retries=2", expect=1)
    printed = " ".join(failed.stdout.split())
    place = rf"{small_disk}/root/\S+"
    assert re.search(
        rf"infrastructure: (stage \w+: )?the disk is full while writing {place}: free space there", printed
    )
    assert "trying again" not in printed
    assert "died without a word" not in printed
    assert "0 of 1 run done" in printed
    assert "ended without a word" not in printed
    assert printed.count("run 1 of 1") == 1
    assert failed.stderr == ""
