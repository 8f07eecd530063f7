"""The tests that are for a GPU; where there is none they compute on the CPU."""

import subprocess
import sys

from acceptance.given import ROOT, Answer, Given


def measure(given: Given) -> Answer:
    """Run them; what they print last."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "tests/gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    answer = Answer({"result": lines[-1] if lines else "nothing"})
    answer.wrong = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    answer.expect(done.returncode == 0, f"pytest ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return answer
