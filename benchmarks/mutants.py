"""Apply plausible faults to the source, one at a time: for each, a test must fail.

python benchmarks/mutants.py [--only N[-M]] [--check] [--output FILE]

`mutants.yaml` lists the faults, numbered from 1. Each is applied in a copy of this checkout below `build/mutants`, and
the tests it names run there. Numbers in FILE are skipped, so a stopped command continues. `--check` only lists faults
whose `old` does not occur exactly once in the source, and tests that do not exist. Exit status 1 if a mutant survives.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from tables import table

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
PYTEST = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-n", "2", "--dist", "load")
TIMEOUT = 600  # seconds, of the tests of one mutant


def copy_checkout(tree: Path) -> None:
    """Make `tree` a copy of all files that git does not ignore; links stay links."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, encoding="utf-8", check=True).stdout.split("\0"):
        if name and os.path.lexists(ROOT / name):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)


def first_failure(tree: Path, tests: list[str]) -> str | None:
    """Run `tests` in `tree`; the first that fails, or "timeout", or None if all pass."""
    command = [sys.executable, "-m", "pytest", *PYTEST, *tests]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    log = WORK / "pytest.log"  # a file, since what a test leaves running would keep a pipe open
    with log.open("wb") as out:
        pytest = subprocess.Popen(command, cwd=tree, env=environment, start_new_session=True, stdout=out, stderr=out)
    try:
        pytest.wait(TIMEOUT)
    except BaseException as error:
        os.killpg(pytest.pid, signal.SIGKILL)  # pytest and its workers
        pytest.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return "timeout"
        raise
    failed = re.search(r"(?m)^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", log.read_text("utf-8", "replace"))
    if pytest.returncode and not failed:
        raise SystemExit(f"pytest exited with {pytest.returncode} and no test failed: see {log}")
    return failed[1] if failed else None


def try_mutant(number: int, mutant: dict[str, Any], tree: Path, texts: dict[Path, str]) -> dict[str, Any]:
    """Apply a mutant, run its tests, and restore the file; the line of its result."""
    file, began = next(path for path, text in texts.items() if mutant["old"] in text), time.monotonic()
    (tree / file).write_text(texts[file].replace(mutant["old"], mutant["new"]), encoding="utf-8")
    try:
        killed_by = first_failure(tree, mutant["tests"])
    finally:
        (tree / file).write_text(texts[file], encoding="utf-8")
    line = {"number": number, "subject": mutant["subject"], "fault": mutant["fault"], "file": str(file)}
    return line | {"killed_by": killed_by, "seconds": round(time.monotonic() - began, 1)}


def main(only: str | None, check: bool, output: Path) -> int:
    """Check the mutants, or try those without a result and print a table; the exit status."""
    mutants = dict(enumerate(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")), start=1))
    first, _, last = (only or f"1-{len(mutants)}").partition("-")
    texts = {file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in ROOT.glob("src/paribus/**/*.py")}
    misfits = []
    for number, mutant in mutants.items():
        times = sum(text.count(mutant["old"]) for text in texts.values())
        misfits += [] if times == 1 else [f"{number}: `old` occurs {times} times: {mutant['old']}\n"]
        misfits += [f"{number}: {path} does not exist\n" for path in mutant["tests"] if not (ROOT / path).exists()]
    sys.stdout.writelines(misfits)
    if misfits or check:
        return 1 if misfits else 0
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    results = {line["number"]: line for line in map(json.loads, lines)}
    copy_checkout(WORK / "tree")
    for number in (n for n in range(int(first), int(last or first) + 1) if n in mutants.keys() - results.keys()):
        results[number] = try_mutant(number, mutants[number], WORK / "tree", texts)
        with output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(results[number], ensure_ascii=False) + "\n")
        sys.stderr.write(f"{number}: {results[number]['killed_by'] or 'survived'}\n")
    tried = [line for _, line in sorted(results.items())]
    survivors = [line for line in tried if line["killed_by"] is None]
    survived = Counter(line["subject"] for line in survivors)
    rows = [[name, f"{each - survived[name]} of {each}"] for name, each in Counter(x["subject"] for x in tried).items()]
    sys.stdout.write("\n" + table(["subject", "killed"], rows) + "\n")
    sys.stdout.writelines(f"survived: {line['number']} in {line['file']}: {line['fault']}\n" for line in survivors)
    return 1 if survivors else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="N[-M]", help="numbers of the mutants to try")
    parser.add_argument("--check", action="store_true", help="only check that every mutant fits")
    parser.add_argument("--output", type=Path, default=WORK / "results.jsonl", help="JSON lines, one per mutant")
    raise SystemExit(main(**vars(parser.parse_args())))
