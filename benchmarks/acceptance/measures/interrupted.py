"""A training that is killed with signal 9 and goes on, beside one that was left alone."""

import json
import re
import time
from pathlib import Path

from acceptance.command import artefact, last_line, ran, started
from acceptance.given import Answer, Given

KILLED_AFTER = {True: 50, False: 600}
"""Steps of a rehearsal and of a GPU, past a checkpoint."""
LONGER = ("budget.tokens=2000000", "training.checkpoint_every=500")
"""A GPU makes the steps of a rehearsal before anybody can kill them."""
GOES_ON = r"training goes on from the checkpoint of step ([\d,]+)"
"""What a command says of a training that it found begun."""
LIMIT = 1e-3
"""By how much of itself a loss may differ where a GPU's sums have no fixed order."""


def measure(given: Given) -> Answer:
    """The largest relative difference of a loss, and whether all bytes are the same."""
    alone, killed, longer = given.work / "alone", given.work / "killed", () if given.tiny else LONGER
    answer = Answer()
    answer.expect(ran(given, alone, *longer, log=given.work / "alone.txt") == 0, last_line(given.work / "alone.txt"))
    steps = _kill(given, killed, longer)
    answer.numbers["killed after steps"] = steps
    answer.expect(steps >= KILLED_AFTER[given.tiny], "the run ended before it could be killed")
    answer.expect(ran(given, killed, *longer, log=given.work / "again.txt") == 0, last_line(given.work / "again.txt"))
    went_on = re.search(GOES_ON, (given.work / "again.txt").read_text(encoding="utf-8"))
    answer.numbers["went on from step"] = int(went_on[1].replace(",", "")) if went_on else 0
    answer.expect(went_on is not None, "the training began anew instead of going on")
    if answer.wrong:
        return answer
    losses = [_losses(artefact(root, "training") / "metrics.jsonl") for root in (alone, killed)]
    differs = max(abs(one / other - 1) for one, other in zip(*losses, strict=True))
    weights = [sorted(artefact(root, "training").glob("step_*/model.safetensors"))[-1] for root in (alone, killed)]
    answer.numbers |= {
        "steps": len(losses[0]),
        "losses differ by": differs,
        "same bytes": weights[0].read_bytes() == weights[1].read_bytes(),
    }
    answer.expect(differs <= LIMIT, f"losses differ by {differs:.2g}, above {LIMIT:g}")
    answer.expect(given.device == "cuda" or answer.numbers["same bytes"], "on a CPU the bytes must be the same")
    return answer


def _kill(given: Given, root: Path, overrides: tuple[str, ...]) -> int:
    """Kill a run once it has trained some steps, and the stage with it; how many, none if it ended before."""
    process = started(given, root, *overrides, log=given.work / "killed.txt")
    steps = 0
    while process.poll() is None and steps < KILLED_AFTER[given.tiny]:
        time.sleep(0.02)
        steps = max((_lines(path) for path in root.glob("cache/work/**/metrics.jsonl")), default=0)
        steps = steps or max((_lines(path) for path in root.rglob("metrics.jsonl")), default=0)
    ended = process.poll() is not None
    process.kill()
    process.wait()
    return 0 if ended else steps


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _losses(path: Path) -> list[float]:
    return [json.loads(line)["train/loss"] for line in path.read_text(encoding="utf-8").splitlines()]
