"""Writes the record of a sweep when its command is given."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from paribus.config.arguments import Command
from paribus.config.groups.execution import SweepConfig
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.run_names import labels, run_names
from paribus.pipeline.record.sweep_record import SWEEP_RECORD, SweepRecord, SweptRun
from paribus.store import files
from paribus.tracking.destination import public_uri

_OF_A_LAUNCHER = "hydra.launcher."
"""Settings that make no run another one, and may hold what is nobody's to read: `setup` of submitit."""


def write_sweep(root: OutputRoot, sweep: SweepConfig, command: Command, runs: Sequence[PreparedRun]) -> None:
    """Write down by which command a sweep was given, now. Passwords of a tracker stay out of it."""
    named = zip(run_names(runs), labels(runs), runs, strict=True)
    record = SweepRecord(
        id=sweep.id,
        name=sweep.name,
        given=time.time(),
        multirun=command.multirun,
        overrides=_public(command.overrides, runs[0]),
        config_directories=tuple(str(Path(directory).resolve()) for directory in command.config_directories),
        runs=tuple(SweptRun(run.run_id, name, label, _public(run.job.overrides, run)) for name, label, run in named),
    )
    path = root.sweep(sweep.id) / SWEEP_RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, dataclasses.asdict(record))


def _public(overrides: Sequence[str], run: PreparedRun) -> tuple[str, ...]:
    """Overrides without what is no business of whoever reads the record."""
    return tuple(_shown(overrides, run.job.config.tracking.uri))


def _shown(overrides: Sequence[str], uri: str | None) -> Iterator[str]:
    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key == "tracking.uri" and uri:
            yield f"tracking.uri='{public_uri(uri)}'"
        elif not key.startswith(_OF_A_LAUNCHER):
            yield override
