"""A training that is killed, or that SIGTERM stops, and goes on, beside one that was left alone."""

import json
import os
import re
import signal
import time
from pathlib import Path

from acceptance.command import artefact, last_line, ran, started
from acceptance.given import Answer, Given

KILLED_AFTER = {True: 50, False: 600}
"""Steps of a rehearsal and of a GPU, past a checkpoint."""
LONGER = ("budget.tokens=400000", "training.checkpoint_every=500")
"""Some 1,560 steps: a GPU makes those of a rehearsal before anybody can kill them."""
METRICS = "metrics.jsonl"
GOES_ON = r"training goes on from the checkpoint of step ([\d,]+)"
"""What a command says of a training that it found begun."""
LIMIT = 1e-3
"""By how much of itself a loss may differ where a GPU's sums have no fixed order."""
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGTERM}
DETERMINISTIC = "training.deterministic=true"


def measure(given: Given) -> Answer:
    """The largest relative difference of a loss, and whether all bytes are the same.

    One that is stopped has deterministic operations alone, and must end with the same bytes.
    """
    alone, broken_off = given.work / "alone", given.work / given.of
    overrides = (*([] if given.tiny else LONGER), *([DETERMINISTIC] if given.of == "stopped" else []))
    answer, logs = Answer(), [given.work / f"{name}.txt" for name in ("alone", "again")]
    answer.expect(ran(given, alone, *overrides, log=logs[0]) == 0, last_line(logs[0]))
    steps = _break_off(given, broken_off, overrides)
    answer.numbers[f"{given.of} after steps"] = steps
    answer.expect(steps >= KILLED_AFTER[given.tiny], f"the run ended before it could be {given.of}")
    answer.expect(ran(given, broken_off, *overrides, log=logs[1]) == 0, last_line(logs[1]))
    went_on = re.search(GOES_ON, logs[1].read_text(encoding="utf-8"))
    answer.numbers["went on from step"] = int(went_on[1].replace(",", "")) if went_on else 0
    answer.expect(went_on is not None, "the training began anew instead of going on")
    if given.of == "stopped":
        answer.expect(answer.numbers["went on from step"] >= steps, "no checkpoint was written at the stop")
    if answer.wrong:
        return answer
    losses = [_losses(artefact(root, "training") / METRICS) for root in (alone, broken_off)]
    differs = max(abs(one / other - 1) for one, other in zip(*losses, strict=True))
    weights = [sorted(artefact(root, "training").glob("step_*/model.safetensors"))[-1] for root in (alone, broken_off)]
    answer.numbers |= {
        "steps": len(losses[0]),
        "losses differ by": differs,
        "same bytes": weights[0].read_bytes() == weights[1].read_bytes(),
    }
    answer.expect(differs <= LIMIT, f"losses differ by {differs:.2g}, above {LIMIT:g}")
    may_round = given.device == "cuda" and given.of == "killed"
    answer.expect(may_round or answer.numbers["same bytes"], "the bytes must be the same")
    return answer


def _break_off(given: Given, root: Path, overrides: tuple[str, ...]) -> int:
    """Break a run off once it has trained some steps; after how many, none if it ended before."""
    process = started(given, root, *overrides, log=given.work / "broken_off.txt")
    steps = 0
    while process.poll() is None and steps < KILLED_AFTER[given.tiny]:
        time.sleep(0.02)
        steps = trained_steps(root)
    ended = process.poll() is not None
    process.send_signal(SIGNALS[given.of])
    process.wait()
    return 0 if ended else steps


def trained_steps(root: Path) -> int:
    """Steps of the training that went furthest below a root, of which files and directories may vanish meanwhile."""
    found = (Path(directory) / METRICS for directory, _, names in os.walk(root) if METRICS in names)
    return max(map(_lines, found), default=0)


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _losses(path: Path) -> list[float]:
    return [json.loads(line)["train/loss"] for line in path.read_text(encoding="utf-8").splitlines()]
