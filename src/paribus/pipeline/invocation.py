"""What the runs of one command leave for each other and for the command, whose process may be on another machine."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from paribus.config.groups.execution import SweepConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot
from paribus.store import files


def refuse_changed(sweep: SweepConfig | None, identifier: str) -> None:
    """ConfigurationError where the command meant another run than the one that its files make of its overrides now."""
    if sweep and sweep.run not in (None, identifier):
        raise ConfigurationError(
            f"this job was to be run {sweep.run}: a file of the configuration, or one that it names, changed since the "
            "command began, so nothing is run; give the command again"
        )


def why_stopped(root: OutputRoot, sweep: SweepConfig | None) -> str | None:
    """Return the reason to start no more runs of a command, None if there is none."""
    with suppress(FileNotFoundError):
        return None if sweep is None else _stop_mark(root, sweep).read_text(encoding="utf-8")
    return None


def stop(root: OutputRoot, sweep: SweepConfig, why: str) -> None:
    """Let no more runs of a command start."""
    files.write_text(_stop_mark(root, sweep), why)


def allow_start(root: OutputRoot, sweep: SweepConfig) -> None:
    """Forget why runs were not to start, so that the command leaves nothing behind."""
    _stop_mark(root, sweep).unlink(missing_ok=True)


def leave_note(config: RunConfig, failure: Mapping[str, Any]) -> None:
    """Tell the command, which may not see this terminal, why its run did not begin, or why its end is not recorded."""
    if config.sweep is not None and config.sweep.run is not None:
        note = OutputRoot.of(config).refusal(config.sweep.run)
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(note, failure)


def _stop_mark(root: OutputRoot, sweep: SweepConfig) -> Path:
    return root.sweep(sweep.id) / f"stopped-{sweep.invocation}"
