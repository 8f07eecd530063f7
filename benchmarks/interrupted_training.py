"""Three real runs of one configuration: undisturbed, killed once, killed twice; they must end with the same bytes.

python benchmarks/interrupted_training.py DIRECTORY [PICTURE]

Runs `paribus run` in DIRECTORY/0, /1 and /2, sends SIGKILL to the run and all its processes when so many steps are
done, gives the same command again, and compares every file of every artefact. The picture shows the three curves.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import psutil
from matplotlib.figure import Figure

from paribus.reporting.plots import COLOURS, style

COMMAND = ("run", "scale=demo", "budget.tokens=150K", "tracking=none")
KILLS = {"undisturbed": (), "killed once": (130,), "killed twice": (75, 222)}
"""Steps after which a run is killed; checkpoints are written every 100."""


def run(directory: Path, kills: tuple[int, ...]) -> None:
    """Run to the end, killed after each of `kills` steps."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "paribus", *COMMAND]
    for steps in kills:
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)
        kill_after(directory, steps, process)
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=True)


def kill_after(directory: Path, steps: int, process: "subprocess.Popen[bytes]") -> None:
    """Kill a run with its stages once `steps` steps are in its metrics."""
    while lines_of(directory.glob("paribus_runs/artifacts/partial/training-*/work/metrics.jsonl")) < steps:
        if process.poll() is not None:
            raise RuntimeError(f"the run ended before step {steps}")
        time.sleep(0.005)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        os.kill(member.pid, signal.SIGKILL)
    process.wait()


def lines_of(paths: Any) -> int:
    """Lines of the one file there may be."""
    return max((path.read_bytes().count(b"\n") for path in paths), default=0)


def artefacts(directory: Path) -> dict[str, dict[str, str]]:
    """Digests of the files of each stage's artefact."""
    records = directory.glob("paribus_runs/artifacts/*/*/record.json")
    return {path.parent.parent.name: json.loads(path.read_text(encoding="utf-8"))["files"] for path in records}


def curve(directory: Path) -> list[float]:
    """The loss of each step."""
    (path,) = directory.glob("paribus_runs/artifacts/training/*/metrics.jsonl")
    return [json.loads(line)["train/loss"] for line in path.read_text(encoding="utf-8").splitlines()]


def draw(curves: dict[str, list[float]], path: Path) -> None:
    """The curves over each other, the thinnest last, and how far each is from the first."""
    with mpl.rc_context(style()):
        figure = Figure(figsize=(7.5, 4.6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        first = next(iter(curves.values()))
        for number, (name, losses) in enumerate(curves.items()):
            steps, width = range(1, len(losses) + 1), 7 - 2.6 * number
            above.plot(steps, losses, color=COLOURS[number], linewidth=width, label=name, alpha=0.45 + 0.25 * number)
            for kill in KILLS[name]:
                above.axvline(kill, color=COLOURS[number], linestyle=":", linewidth=1.4)
                at = (kill + 1, max(first))
                above.annotate("kill -9", at, color=COLOURS[number], fontsize=8, rotation=90, va="top")
            difference = [mine - its for mine, its in zip(losses, first, strict=True)]
            below.plot(steps, difference, color=COLOURS[number], linewidth=1.5)
        above.set(ylabel="loss (nats a token)", title="One run, undisturbed, killed once and killed twice")
        above.legend()
        below.set(xlabel="step", ylabel="difference", ylim=(-1e-6, 1e-6))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None})


def main(directory: Path, picture: Path) -> None:
    """Run, compare, draw."""
    curves: dict[str, list[float]] = {}
    expected: dict[str, dict[str, str]] | None = None
    for number, (name, kills) in enumerate(KILLS.items()):
        started = time.monotonic()
        run(directory / str(number), kills)
        found = artefacts(directory / str(number))
        expected = expected or found
        same = sum(found[stage] == expected[stage] for stage in expected)
        curves[name] = curve(directory / str(number))
        line = f"{name}: {len(curves[name])} steps, {time.monotonic() - started:.0f} s, "
        sys.stdout.write(f"{line}{same} of {len(expected)} artefacts with the bytes of the undisturbed run\n")
        if found != expected:
            raise SystemExit(f"{name} differs from the undisturbed run")
    draw(curves, picture)
    sys.stdout.write(f"picture: {picture}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else Path("docs/images/interrupted.png"))
