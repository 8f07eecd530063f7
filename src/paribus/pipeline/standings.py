"""Progress of a sweep while its runs end: its rows so far, the work left, and runs that a scheduler has elsewhere."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.markup import escape

from paribus.config.groups.execution import SweepConfig
from paribus.config.metrics import BITS, main_scores
from paribus.config.schema import RunConfig
from paribus.config.units import format_duration
from paribus.errors import ParibusError
from paribus.pipeline.display import Display
from paribus.pipeline.graph import EVALUATION
from paribus.pipeline.prepared import PreparedRun, factor_labels, unique_nodes
from paribus.pipeline.records import read_run_record
from paribus.pipeline.root import OutputRoot
from paribus.store import files
from paribus.store.files import read_object_if_any

_MOST = 8
"""Rows that are shown; a terminal has little room, and the table has all."""
_FULL = "bits per byte of held-out text, lower is better"

STAGES_FILE = "stages.json"
ROWS = "rows"
SECONDS_BETWEEN_LOOKS = 1.0
ELSEWHERE = ("submitit",)
"""Beginnings of the names of launchers whose jobs print into files of their own."""


def show_standings(root: OutputRoot, sweep: SweepConfig | None, display: Display) -> None:
    """Show the rows of a sweep so far, once two have a score and until all runs have."""
    if sweep is None or sweep.jobs == 1:
        return
    try:
        shown = list(lines(root, read_object_if_any(root.sweep(sweep.id) / STAGES_FILE).get(ROWS, [])))
    # The run has ended well, so a line about it fails nothing.
    except (KeyError, TypeError, ValueError, OSError, ParibusError):
        return
    for line in shown:
        display.message(f"  [dim]{escape(line)}[/dim]")


def lines(root: OutputRoot, rows: Sequence[tuple[str, int, str]]) -> Iterator[str]:
    """Yield lines about `rows`: row, seed and key of the evaluation of each run that is to be scored."""
    scores = {(row, seed): numbers for row, seed, key in rows if (numbers := _scores(root, key))}
    if len({row for row, _ in scores}) < 2 or len(scores) == len(rows):
        return
    name = next((name for name in next(iter(scores.values())) if all(name in own for own in scores.values())), None)
    if name is None:
        return
    by_row: dict[str, dict[int, float]] = {row: {} for row, *_ in rows}
    for (row, seed), numbers in scores.items():
        by_row[row][seed] = numbers[name]
    scored = {row: of_row for row, of_row in by_row.items() if of_row}
    first, baseline = next(iter(by_row.items()))
    yield f"so far, {len(scores)} of {len(rows)} runs: {_FULL if name == BITS else name}"
    width = max(map(len, list(scored)[:_MOST]))
    for row, of_row in list(scored.items())[:_MOST]:
        common = [value - baseline[seed] for seed, value in of_row.items() if seed in baseline and row != first]
        change = f", {fmean(common):+.4f} from {first} with the same seeds" if common else ""
        seeds = "1 seed" if len(of_row) == 1 else f"{len(of_row)} seeds"
        yield f"  {row:<{width}}  {fmean(of_row.values()):.4f}  {seeds}{change}"
    if len(scored) > _MOST:
        yield f"  and {len(scored) - _MOST} more rows"


def _scores(root: OutputRoot, key: str) -> Mapping[str, float]:
    artifact = root.store.find(EVALUATION, key)
    return main_scores(artifact.record()["result"]["metrics"]) if artifact else {}


def write_stages(root: OutputRoot, sweep: SweepConfig, runs: Sequence[PreparedRun]) -> None:
    """Write which artefacts a sweep needs and which rows they score, for its jobs to show progress."""
    path = root.sweep(sweep.id) / STAGES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    stages = [[*node.place] for node in unique_nodes(runs)]
    rows = [
        (" ".join(factor_labels(run, run.factors).values()), run.job.config.seed, run.required[EVALUATION].key)
        for run in runs
        if EVALUATION in run.required
    ]
    files.write_json(path, {"name": sweep.name, "factors": list(sweep.factors), "stages": stages, ROWS: rows})


def announce(root: OutputRoot, config: RunConfig, display: Display) -> None:
    """Show how many stages of the sweep are done and about how long the others take, by the mean of those done."""
    if config.sweep is None or config.sweep.jobs == 1:
        return
    stages = read_object_if_any(root.sweep(config.sweep.id) / STAGES_FILE).get("stages")
    if not isinstance(stages, list):
        return
    taken: dict[str, list[float]] = defaultdict(list)
    missing: list[str] = []
    for name, key in stages:
        artifact = root.store.find(name, key)
        if artifact is None:
            missing.append(name)
        else:
            taken[name].append(float(artifact.record()["seconds"]))
    if missing:
        timed = [fmean(taken[name]) for name in missing if name in taken]
        at_least = "at least" if len(timed) < len(missing) else "about"
        remaining = f", {at_least} {format_duration(sum(timed))} left" if sum(timed) else ""
        done = len(stages) - len(missing)
        display.message(f"  [dim]{done} of {len(stages)} stages of the sweep are done{remaining}[/dim]")


@contextmanager
def watched(launcher: str, runs: Mapping[str, Path], console: Console) -> Iterator[None]:
    """Print in the block what runs of a scheduler have finished; `runs` are by label."""
    if not launcher.startswith(ELSEWHERE):
        yield
        return
    jobs = "1 job is" if len(runs) == 1 else f"{len(runs)} jobs are"
    console.print(f"{jobs} with launcher {launcher}", markup=False)
    seen = {label: _states(path) for label, path in runs.items()}
    stop = threading.Event()

    def look() -> None:
        for label, path in runs.items():
            states = _states(path)
            known = seen[label] if states[:1] == seen[label][:1] else []
            for state in (state for state in states if state not in known):
                console.print(f"  {label}: {state}", markup=False, soft_wrap=True)
            seen[label] = states

    def follow() -> None:
        while not stop.wait(SECONDS_BETWEEN_LOOKS):
            look()

    thread = threading.Thread(target=follow, daemon=True, name="watch-runs")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        look()


def _states(directory: Path) -> list[str]:
    """States of a run by its record; of another attempt the first is another."""
    record = read_run_record(directory)
    if record is None:
        return []
    began = f"began as process {record.get('pid')} on {record.get('host')}"
    stages = [f"{name} {stage['state']}" for name, stage in record["stages"].items()]
    return [began, *stages, *([] if record["status"] == "running" else [record["status"]])]
