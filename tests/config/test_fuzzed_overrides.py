"""Whatever is typed after a verb is a configuration or an error that says where, and never does anything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("count", "seed"), [(100, 1), pytest.param(10_000, 2, marks=pytest.mark.stress)])
@pytest.mark.timeout(7200)
def test_fuzzed_overrides_are_composed_or_refused_by_path_and_touch_nothing(
    tmp_path: Path, count: int, seed: int
) -> None:
    script = Path(__file__).with_name("override_fuzzer.py")
    command = [sys.executable, str(script), str(count), str(seed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    counts = json.loads(done.stdout)
    assert counts.pop("wrong") == []
    assert counts["overrides"] >= count and counts["problems"] > count / 2
    assert list(tmp_path.iterdir()) == []
