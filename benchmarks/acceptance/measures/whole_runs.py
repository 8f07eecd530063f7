"""`paribus run` from text to scores, the same again, and two runs at once."""

import time

from acceptance.command import last_line, ran, started
from acceptance.given import Answer, Given


def measure(given: Given) -> Answer:
    """Seconds of each."""
    answer, root = Answer(), given.work / "root"
    for name in ("first", "again"):
        began, log = time.monotonic(), given.work / f"{name}.txt"
        status = ran(given, root, log=log)
        answer.numbers[f"{name} s"] = time.monotonic() - began
        answer.expect(status == 0, f"{name}: exit status {status}: {last_line(log)}")
    began = time.monotonic()
    logs = [given.work / f"seed_{seed}.txt" for seed in (1, 2)]
    both = [started(given, root, f"seed={seed}", log=log) for seed, log in zip((1, 2), logs, strict=True)]
    for process, log in zip(both, logs, strict=True):
        status = process.wait()
        answer.expect(status == 0, f"two at once: exit status {status}: {last_line(log)}")
    answer.numbers["two at once s"] = time.monotonic() - began
    if not answer.wrong:
        evaluated = sorted((root / "artifacts" / "evaluation").iterdir())
        answer.numbers["evaluations"] = len(evaluated)
        answer.expect(len(evaluated) == 3, f"{len(evaluated)} evaluations of three runs")
    return answer
