"""How long `paribus tokens encode` takes to start, also the first time after installation."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from peers.job import available_cores, environment
from peers.table import seconds, table

TEXT = "All else being equal."
COMMAND = "import sys; from paribus.cli import main; sys.exit(main())"
PEER = "import sys, tokenizers; print(tokenizers.Tokenizer.from_file(sys.argv[1]).encode(sys.stdin.read()).ids)"
Times = dict[str, list[float | str]]


def measure(vocabularies: Path, repeats: int, report: Callable[[str], None]) -> tuple[str, bool]:
    """A table of whole processes that encode one sentence, and whether none failed."""
    report("start of paribus tokens encode")
    tokenize = [COMMAND, "tokens", "encode", str(vocabularies / "bpe")]
    taken: Times = {}
    for _ in range(repeats):
        taken.setdefault("`paribus tokens encode`", []).append(_process(tokenize))
        taken.setdefault("`paribus --version`", []).append(_process([COMMAND, "--version"]))
        taken.setdefault("Python with `tokenizers`", []).append(_process([PEER, str(vocabularies / "tokenizer.json")]))
    report("paribus tokens encode after installation")
    with tempfile.TemporaryDirectory() as cache:
        first = _process(tokenize, PARIBUS_CACHE=cache)
    taken["`paribus tokens encode`, first use after installation: kernels are compiled"] = [first]
    failed = [what for what, values in taken.items() if any(isinstance(value, str) for value in values)]
    rows = [[what, _shown(values)] for what, values in taken.items()]
    return "Whole processes that encode one sentence.\n\n" + table(["what", "s"], rows), not failed


def _process(arguments: list[str], **variables: str) -> float | str:
    """Seconds from start to end, or the last line of what went wrong."""
    command = [sys.executable, "-c", *arguments]
    variables_of_it = environment(len(available_cores()), **variables)
    started = time.perf_counter()
    done = subprocess.run(command, env=variables_of_it, input=TEXT, text=True, capture_output=True, check=False)
    taken = time.perf_counter() - started
    return taken if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1]


def _shown(values: list[float | str]) -> str:
    problems = [value for value in values if isinstance(value, str)]
    return f"**{problems[0]}**" if problems else seconds([value for value in values if not isinstance(value, str)])
