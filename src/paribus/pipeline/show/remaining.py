"""How much of a sweep is left, estimated from what its finished stages took."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from paribus.config.groups.execution import SweepConfig
from paribus.config.schema import RunConfig
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun, factor_labels, unique_nodes
from paribus.pipeline.show.display import Display, duration
from paribus.pipeline.stages import EVALUATION
from paribus.store import files
from paribus.store.files import read_object_if_any

STAGES_FILE = "stages.json"
ROWS = "rows"


def rows_of(runs: Sequence[PreparedRun]) -> list[tuple[str, int, str]]:
    """Row, seed and key of the evaluation of each run of a sweep that is to be scored."""
    return [
        (" ".join(factor_labels(run, run.factors).values()), run.job.config.seed, run.wanted[EVALUATION].key)
        for run in runs
        if EVALUATION in run.wanted
    ]


def write_stages(root: OutputRoot, sweep: SweepConfig, runs: Sequence[PreparedRun]) -> None:
    """Write down which artefacts a sweep needs and whose scores they are, for its jobs to say how it stands."""
    path = root.sweep(sweep.id) / STAGES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    stages = [[*node.place] for node in unique_nodes(runs)]
    files.write_json(path, {"name": sweep.name, "factors": list(sweep.factors), "stages": stages, ROWS: rows_of(runs)})


def announce(root: OutputRoot, config: RunConfig, display: Display) -> None:
    """Say how many stages of the sweep are done and about how long the rest takes."""
    if config.sweep is None or config.sweep.jobs == 1:
        return
    path = root.sweep(config.sweep.id) / STAGES_FILE
    stages = read_object_if_any(path).get("stages")
    if not isinstance(stages, list):
        return
    done, seconds, unknown = estimate(root, stages)
    if done == len(stages):
        return
    at_least = "at least " if unknown else "about "
    left = f", {at_least}{duration(seconds)} left" if seconds else ""
    display.message(f"  [dim]{done} of {len(stages)} stages of the sweep are done{left}[/dim]")


def estimate(root: OutputRoot, stages: list[list[str]]) -> tuple[int, float, bool]:
    """Stages done, estimated seconds for the rest, and whether some kind of stage was never timed."""
    taken: dict[str, list[float]] = defaultdict(list)
    missing: list[str] = []
    for name, key in stages:
        artifact = root.store.find(name, key)
        if artifact is None:
            missing.append(name)
            continue
        record: dict[str, Any] = artifact.record()
        taken[name].append(float(record["seconds"]))
    timed = [mean(taken[name]) for name in missing if name in taken]
    return len(stages) - len(missing), sum(timed), len(timed) < len(missing)
