"""The verb `sync`: send to MLflow whatever it lacks of the runs below an output root."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.config.flags import HELP_FLAGS
from paribus.config.groups.execution import TrackingConfig
from paribus.config.names import proper_name, proper_path
from paribus.config.options import read_options
from paribus.errors import ConfigurationError
from paribus.tracking.abandoned import close_abandoned
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME
from paribus.tracking.mlflow_sink import MlflowSink, TrackingError
from paribus.tracking.reader import EventReader
from paribus.tracking.replay import Sent

KINDS_OF_LOGS = ("runs", "sweeps", "reports")
HELP = """usage: paribus sync [root=paribus_runs] [tracking.uri=URI] [tracking.experiment=NAME]
                    [tracking.patience=SECONDS]

Send to MLflow whatever it lacks of the runs, sweeps and reports below ROOT; what arrived before is not sent again. Each
goes where its own configuration wanted it, unless a URI is named.

exit status: 0 all was sent or wants no tracker; 1 some failed, a line each says why; 2 refused

examples:
  paribus sync
  paribus sync root=/data/paribus_runs
  paribus sync tracking.uri=http://mlflow.example:5000 tracking.patience=60
"""
_OPTIONS = ("root", "tracking.uri", "tracking.experiment", "tracking.patience")


@dataclass(frozen=True)
class RunSync:
    """What became of one run: how many events of each kind were sent now, or why not."""

    run_id: str
    events: Counter[str] = field(default_factory=Counter)
    problems: tuple[str, ...] = ()
    error: str | None = None
    skipped: bool = False

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.run_id}: {'skipped' if self.skipped else 'failed'}: {self.error}"
        counts = ", ".join(f"{number} {kind}" for kind, number in sorted(self.events.items()))
        return "; ".join(
            [f"{self.run_id}: {self.events.total()} events sent" + f" ({counts})" * bool(counts), *self.problems]
        )


@dataclass(frozen=True)
class SyncReport:
    """One entry a run, in the order of their names."""

    runs: tuple[RunSync, ...]

    @property
    def complete(self) -> bool:
        """Whether no run failed; a run whose configuration wants no tracker counts as done."""
        return all(run.error is None or run.skipped for run in self.runs)

    @property
    def sent(self) -> int:
        """Events sent by this call."""
        return sum(run.events.total() for run in self.runs)


def sync(root: Path, tracking: TrackingConfig | None = None, run_ids: Collection[str] | None = None) -> SyncReport:
    """Send what is missing of all runs below `root`, or of `run_ids`; what arrived before is not sent again.

    `tracking` names the MLflow; None sends each run where its own configuration wanted it. An MLflow that fails is
    reported, not raised; ConfigurationError for a URI that MLflow cannot open.
    """
    return _sync(Path(root), lambda recorded: tracking or recorded, run_ids)


def main(argv: Sequence[str]) -> int:
    """`paribus sync [root=...] [tracking.uri=...] [tracking.experiment=...]`: one line a run; 1 when a run failed."""
    if HELP_FLAGS & set(argv):
        sys.stdout.write(HELP)
        return 0
    options = read_options(argv, _OPTIONS)
    root = Path(options.pop("root", "paribus_runs"))
    if not root.is_dir():
        raise ConfigurationError(f"root: {str(root)!r} is no directory; name the output root of the runs with root=...")
    _check_names(root, options.get("tracking.experiment"))
    overrides: dict[str, Any] = {name.removeprefix("tracking."): value for name, value in options.items()}
    if "patience" in overrides:
        overrides["patience"] = _positive(overrides["patience"])
    if "uri" in overrides:
        overrides["kind"] = "mlflow"
    report = _sync(root, lambda recorded: dataclasses.replace(recorded, **overrides), None, _write_line)
    if not report.runs:
        _write_line(f"no runs below {root.resolve()}")
    return 0 if report.complete else 1


def _sync(
    root: Path,
    choose: Callable[[TrackingConfig], TrackingConfig],
    run_ids: Collection[str] | None,
    tell: Callable[[RunSync], None] = lambda run: None,
) -> SyncReport:
    sinks: dict[Destination, MlflowSink] = {}
    unreachable: dict[Destination, str] = {}
    runs = []
    for directory in _run_directories(root.resolve(), run_ids):
        run = _sync_run(directory, choose(_recorded(directory)), root, sinks, unreachable)
        runs.append(run)
        tell(run)
    return SyncReport(tuple(runs))


def _sync_run(
    directory: Path,
    tracking: TrackingConfig,
    root: Path,
    sinks: dict[Destination, MlflowSink],
    unreachable: dict[Destination, str],
) -> RunSync:
    if tracking.kind == "none":
        return RunSync(directory.name, error="its tracking.kind is none; name a tracking.uri to send it", skipped=True)
    destination = Destination.resolve(tracking, root)
    if destination in unreachable:
        return RunSync(directory.name, error=unreachable[destination])
    close_abandoned(directory, root)
    sink = sinks.setdefault(destination, MlflowSink(destination))
    try:
        sent: Sent = sink.send(directory)
    except (TrackingError, TimeoutError, OSError) as error:
        if isinstance(error, TrackingError) and error.unreachable:
            unreachable[destination] = str(error)
        return RunSync(directory.name, error=str(error))
    finally:
        sink.forget(directory)
    return RunSync(directory.name, sent.events, tuple(sent.problems))


def _run_directories(root: Path, run_ids: Collection[str] | None) -> list[Path]:
    logs = sorted(log for kind in KINDS_OF_LOGS for log in (root / kind).glob(f"*/{FILE_NAME}"))
    found = [log.parent for log in logs if run_ids is None or log.parent.name in run_ids]
    if missing := sorted(set(run_ids or ()) - {directory.name for directory in found}):
        raise ConfigurationError(f"no run {', '.join(missing)} below {root / 'runs'}")
    return found


def _recorded(directory: Path) -> TrackingConfig:
    """Where the run's own configuration wanted it to be shown."""
    start = next((event for event in EventReader(directory / FILE_NAME).poll() if event.event == "start"), None)
    recorded: Mapping[str, Any] = start.fields["tracking"] if start is not None else {}
    names = {item.name for item in dataclasses.fields(TrackingConfig)}
    return TrackingConfig(**{name: value for name, value in recorded.items() if name in names})


def _check_names(root: Path, experiment: str | None) -> None:
    for name, value, judge in (("root", str(root), proper_path), ("tracking.experiment", experiment, proper_name)):
        try:
            _ = value if value is None else judge(value)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from error


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise ConfigurationError(f"tracking.patience: {text!r} is no positive number of seconds")
    return value


def _write_line(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
