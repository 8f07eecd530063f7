"""Everything that paribus does on a GPU, once, on one GPU that is there: python benchmarks/gpu_acceptance.py

    --device cuda|cpu    cpu rehearses every step at tiny sizes, and its speeds mean nothing
    --part 1|2|3         a third of the steps, each less than nine minutes on an H100; all where it is left out
    --steps NAME ...     these only
    --output FILE        outcomes as JSON, rewritten after every step; steps that it holds already are kept

Each step is a process with a time limit, and a failure stops nothing. The table is printed last; the exit status is 1
unless every step of the call passed.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from acceptance.given import Given
from acceptance.steps import STEPS, Step, run
from acceptance.table import table


def main(given: argparse.Namespace) -> int:
    """Run the steps; 0 where all passed."""
    chosen = _chosen(given)
    outcomes = _read(given.output)
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        for step in chosen:
            sys.stderr.write(f"{step.module}: {step.about}\n")
            shutil.rmtree(Path(directory) / step.module, ignore_errors=True)
            told = Given(given.device, given.device == "cpu", directory, step.limit_s)
            outcomes[step.module] = run(step, told).to_json()
            if given.output:
                given.output.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")
    sys.stdout.write(table(outcomes.values()))
    return 0 if all(outcomes[step.module]["state"] == "passed" for step in chosen) else 1


def _chosen(given: argparse.Namespace) -> list[Step]:
    steps = {step.module: step for step in STEPS}
    named = [steps[name] for name in given.steps] if given.steps else list(STEPS)
    return [step for step in named if given.part in (None, step.part)]


def _read(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--part", type=int, choices=sorted({step.part for step in STEPS}))
    parser.add_argument("--steps", nargs="+", choices=[step.module for step in STEPS])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--directory", type=Path, help="where files are kept meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(_arguments()))
