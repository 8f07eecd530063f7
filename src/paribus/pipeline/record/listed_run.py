"""What a tracker's list of runs has of a run: what it is called among others, who gave it, and its scores."""

import getpass
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paribus.config.arms import ARM
from paribus.config.schema import RunConfig
from paribus.evaluation.measures.main_scores import main_scores
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.run_names import run_name
from paribus.pipeline.record.sweep_record import SweepRecord, SweptRun, read_sweep
from paribus.store.provenance import built_from, git_state
from paribus.tracking.events import EventLog

COMMAND_TAG, USER_TAG = "paribus.command", "mlflow.user"
COMMIT_TAG, CHANGED_TAG = "mlflow.source.git.commit", "mlflow.source.git.dirty"


def sweep_of(config: RunConfig, root: OutputRoot) -> SweepRecord | None:
    """The record of the sweep that wants a run now; None where there is none."""
    return read_sweep(root.sweep(config.sweep.id)) if config.sweep else None


def own_name(config: RunConfig, run_id: str, sweep: SweepRecord | None) -> str:
    """The run by itself, as its sweep has it on record, which tells its runs apart; without a sweep, by its kinds."""
    swept = _swept(run_id, sweep)
    return swept.name if swept else run_name(config)


def listed_name(config: RunConfig, run_id: str, sweep: SweepRecord | None) -> str:
    """What differs from the other runs of its sweep, `scaffold_bpe seed=1`; of a run alone, its own name."""
    swept = _swept(run_id, sweep) if sweep and len(sweep.runs) > 1 else None
    return swept.label if swept else own_name(config, run_id, sweep)


def headed_name(config: RunConfig, run_id: str, sweep: SweepRecord | None) -> str:
    """What a command calls a run: as its sweep lists it, or by its arm where it is alone; then its own name."""
    own, listed = own_name(config, run_id, sweep), listed_name(config, run_id, sweep)
    swept = _swept(run_id, sweep)
    arms = [text.partition("=")[2] for text in (swept.overrides if swept else ()) if text.startswith(f"{ARM}=")]
    first = arms[-1:] if listed == own else [listed]
    return "  ".join([*first, own])


def tell_origin(events: EventLog, sweep: SweepRecord | None) -> None:
    """Tag a run or a sweep with its sweep, its command, the user, and the commit of paribus' checkout or image."""
    git = git_state(Path(__file__)) or built_from() or {}
    tags = {
        "paribus.sweep": f"{sweep.name} {sweep.id}" if sweep else None,
        COMMAND_TAG: sweep.command.typed("run", multirun=sweep.multirun) if sweep else None,
        USER_TAG: _user(),
        COMMIT_TAG: git.get("commit"),
        CHANGED_TAG: "True" if git.get("diff") or git.get("changes") else None,
    }
    for name, tag in tags.items():
        if tag is None:
            events.untag(name)
        else:
            events.tag(name, tag)


def score_numbers(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """`bits_per_byte` and `<task>` in every run that has them, of an evaluation and of a fine-tuning.

    They stand in no section of a tracker, as no other number of a run does.
    """
    found = [main_scores(result.get("metrics", {})) for result in results]
    return {name.replace("/", "_"): value for scores in found for name, value in scores.items()}


def _swept(run_id: str, sweep: SweepRecord | None) -> SweptRun | None:
    return next((run for run in sweep.runs if run.run_id == run_id), None) if sweep else None


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a number that no account has, as in a container
        return None
