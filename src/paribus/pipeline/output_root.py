"""Where things are below the output root of a configuration."""

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from paribus.config.groups.execution import EngineConfig
from paribus.config.identity import digest
from paribus.config.names import proper_path
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import Node
from paribus.pipeline.record.sweep_record import SWEEP_RECORD
from paribus.pipeline.stages import EVALUATION, FINETUNING
from paribus.store.artifacts import Store
from paribus.store.claims import run_claim
from paribus.store.files import RUN_RECORD

RUN_ID_LENGTH = 16
ARTEFACTS = "artifacts"
"""Directory of an output root that is its store."""


@dataclass(frozen=True)
class OutputRoot:
    """Paths of one output root."""

    path: Path
    lease_seconds: float

    @classmethod
    def of(cls, config: RunConfig) -> "OutputRoot":
        """The output root of a configuration; ConfigurationError where that can be no directory."""
        return cls(output_root(config.root), config.engine.lease_seconds)

    def require_writable(self) -> None:
        """Make the root; ConfigurationError where no files can be made there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise ConfigurationError(f"root: {self._cannot_hold(error)}") from error

    def unwritable(self) -> str:
        """What `require_writable` would say of the root, which is not made; empty where files can be made there."""
        try:
            there = next(path for path in (self.path, *self.path.parents) if path.is_dir())
            with TemporaryFile(dir=there):
                return ""
        except OSError as error:
            return self._cannot_hold(error)

    def _cannot_hold(self, error: OSError) -> str:
        return f"{str(self.path)!r} cannot hold an output root ({error.strerror}); name another with root=..."

    @property
    def is_used(self) -> bool:
        """Whether a command has made anything there."""
        records = (f"runs/*/{RUN_RECORD}", f"sweeps/*/{SWEEP_RECORD}")
        return (self.path / ARTEFACTS).is_dir() or any(any(self.path.glob(pattern)) for pattern in records)

    @property
    def store(self) -> Store:
        """The artefact store."""
        return Store(self.path / ARTEFACTS, self.lease_seconds)

    @property
    def cache(self) -> Path:
        """What may be made again: digests of files outside the store, probes of the speed of training."""
        return self.path / "cache"

    @property
    def reruns(self) -> Path:
        """Where the output roots are of runs that were made again, each called by its run and something more."""
        return self.path / "reruns"

    def run(self, run_id: str) -> Path:
        """Directory of a run: its record, events and logs."""
        return self.path / "runs" / run_id

    def refusal(self, run_id: str) -> Path:
        """Why the job of a run that a command composed did not begin it."""
        return self.path / "failures" / f"run-{run_id}.json"

    def run_claim(self, run_id: str) -> Path:
        """Who is running a run, as a claim."""
        return run_claim(self.path, run_id)

    def sweep(self, sweep_id: str) -> Path:
        """Directory of a sweep: its events and the list of its artefacts."""
        return self.path / "sweeps" / sweep_id

    def failure(self, node: Node) -> Path:
        """The note of a stage's last failure."""
        return self.path / "failures" / f"{'-'.join(node.place)}.json"


def report_directory(root: Path, sweep: str, name: str) -> Path:
    """Directory of the report of a sweep, given its identifier and name."""
    return root / "reports" / f"{name.replace('/', '-')}-{sweep[:8]}"


def output_root(text: str) -> Path:
    """The output root as an absolute path, whether it is there or is still to be made.

    ConfigurationError where a file is there: all verbs ask here, so that none finds nothing where nothing can be.
    """
    path = Path(os.path.realpath(text))
    if path.exists() and not path.is_dir():
        raise ConfigurationError(f"root: {str(path)!r} is no directory; name the output root with root=...")
    return path


def named_root(text: str | None) -> OutputRoot:
    """The output root that somebody named, the usual one for None; ConfigurationError where it can be none.

    Its lease, which a claim names itself, is the usual one.
    """
    try:
        path = output_root(proper_path(RunConfig.root if text is None else text))
        return OutputRoot(path, EngineConfig.lease_seconds)
    except ValueError as error:
        raise ConfigurationError(f"root: {error}") from error


def run_id(nodes: dict[str, Node]) -> str:
    """Identifier of a run: the start of the key of its last artefact, with fine-tuning of that and its scores."""
    key = list(nodes.values())[-1].key
    if FINETUNING in nodes:
        key = digest([nodes[EVALUATION].key, key])
    return key[:RUN_ID_LENGTH]
