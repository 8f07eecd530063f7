"""Checkpoints that appear whole or not at all, and from which training continues exactly.

A checkpoint is a directory `step_00000123`: the model as a Hugging Face directory, `optimizer.safetensors`,
`state.json` (step, and fingerprint of data and recipe) and `complete.json` (digest of every file; time of training
so far, and what it was computed on). Where processes share the weights, each writes the rows that it has, in
`weights_00000.safetensors` and `optimizer_00000.safetensors`: none ever holds the whole.
"""

import json
import logging
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file

from paribus.errors import DataError
from paribus.modeling.architecture import CONFIG, WEIGHTS, Architecture, read_architecture
from paribus.modeling.decoder import huggingface_rows
from paribus.modeling.models import save_model, save_shape
from paribus.store.files import publish_directory, read_object, sha256, sync_entry, write_json
from paribus.training.fit.determinism import PREFIX
from paribus.training.processes.host import ALONE, Host
from paribus.training.state.file_names import OPTIMIZER, STATE, checkpoint_directories
from paribus.training.state.pieces import save_pieces
from paribus.training.state.snapshot import Snapshot
from paribus.training.state.spent import Spent
from paribus.training.state.stored import StoredTensors

COMPLETE = "complete.json"
WEIGHT_SHARDS = "weights_*.safetensors"
OPTIMIZER_SHARDS = "optimizer_*.safetensors"
SHARDS = (WEIGHT_SHARDS, OPTIMIZER_SHARDS)
OPTIMIZER_FILES = (OPTIMIZER, OPTIMIZER_SHARDS)
"""Patterns of the names of files, of whole tensors or of the rows of processes."""
RESUMABLE = 2
"""Checkpoints that keep their optimizer state: the newest, and one before it in case the newest is damaged."""

logger = logging.getLogger(__name__)


def step_name(step: int) -> str:
    """Directory name of the checkpoint after `step` steps."""
    return f"step_{step:08d}"


@dataclass(frozen=True)
class Checkpoint:
    """One complete checkpoint on disk."""

    path: Path
    step: int
    fingerprint: Mapping[str, Any]
    spent: Spent
    """Time until here."""
    computed_on: tuple[str, ...] = ()
    """Device and precision of each part of the training up to here, each once."""
    optimizer_directory: Path | None = None
    """Where the optimizer's state is; None: with the weights."""

    @property
    def sharded(self) -> bool:
        """Whether processes wrote their rows, so that there is no model as Hugging Face has it."""
        return any(self.path.glob(WEIGHT_SHARDS))

    @property
    def architecture(self) -> Architecture:
        """Of a `Decoder`."""
        return read_architecture(read_object(self.path / CONFIG))

    def weights(self) -> StoredTensors:
        """The parameters of a `Decoder`, by its names."""
        if self.sharded:
            return _tensors(self.path, WEIGHT_SHARDS)
        return StoredTensors.of([self.path / WEIGHTS], huggingface_rows(self.architecture))

    def optimizer(self) -> StoredTensors:
        """The optimizer's state, as a `Snapshot` names it."""
        return _tensors(self.optimizer_directory or self.path, *OPTIMIZER_FILES)

    def model_files(self) -> list[Path]:
        """The files of the Hugging Face directory, sorted; of a sharded one without the weights."""
        found = set(self.path.iterdir()) - {self.path / STATE, self.path / COMPLETE}
        return sorted(found - {path for name in (WEIGHT_SHARDS, *OPTIMIZER_FILES) for path in self.path.glob(name)})


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run in `directory`; those after `kept` steps stay, of the others the newest two."""

    directory: Path
    kept: frozenset[int]
    """Steps after which the checkpoints stand that the run is made for; others are there to go on from."""
    fingerprint: Mapping[str, Any]
    damaged: list[str] = field(default_factory=list)
    """Names of checkpoints that `newest` found damaged and passed over."""
    computed_on: list[str] = field(default_factory=list)
    """What each part of this training was computed on, those before it was resumed among them."""

    def go_on(self, resumed: Checkpoint | None, here: str) -> None:
        """What follows is computed `here`, and what was before as the checkpoint says that it goes on from."""
        self.computed_on[:] = dict.fromkeys((*(resumed.computed_on if resumed else ()), here))

    def save(self, step: int, snapshot: Snapshot, spent: Spent, host: Host = ALONE) -> None:
        """Write the checkpoint after `step` steps aside, sync it, give it its name, and drop what no one needs.

        Every process that has a snapshot takes part, in threads beside the steps; returns when the checkpoint is there.
        """
        final = self.directory / step_name(step)
        partial = self.directory / f"{final.name}.partial"
        partial.mkdir(exist_ok=snapshot.sharded)
        with _disk_errors(partial):
            written = _write_shard(partial, snapshot, host) if snapshot.sharded else {}
            digests = host.gathered_by_writers(written) if snapshot.sharded else {}
            if host.main:
                _write_main(partial, snapshot)
        if host.main:
            write_json(partial / STATE, {"step": step, "fingerprint": dict(self.fingerprint)})
            _remove_strays(partial, digests)
            own = (path for path in sorted(partial.iterdir()) if path.name not in digests)
            digests |= {path.name: sha256(path) for path in own}
            about = {"digests": digests, "spent": asdict(spent), "computed_on": list(self.computed_on)}
            write_json(partial / COMPLETE, about)
            publish_directory(partial, final)
            self._drop_old()
        if snapshot.sharded:
            host.gathered_by_writers({})

    def steps(self) -> list[int]:
        """Steps of the checkpoints on disk, ascending."""
        return list(checkpoint_directories(self.directory))

    def discard_after(self, step: int) -> None:
        """Remove checkpoints of more than `step` steps and what a killed process left half written."""
        keep = {step_name(kept) for kept in self.steps() if kept <= step}
        for path in self.directory.glob("step_*"):
            if path.name not in keep:
                shutil.rmtree(path)

    def newest(self, limit: int) -> Checkpoint | None:
        """The newest undamaged checkpoint of at most `limit` steps; damaged ones are logged and passed over.

        Raises DataError if it was trained on other data, or by another recipe, than `fingerprint` describes.
        """
        for step in reversed([step for step in self.steps() if step <= limit]):
            problem = self._problem(step)
            if problem is None:
                return self._agreeing(self.read(step))
            self.damaged.append(step_name(step))
            logger.warning("checkpoint %s is damaged (%s): going back", self.directory / step_name(step), problem)
        return None

    def read(self, step: int) -> Checkpoint:
        """The checkpoint after `step` steps, not verified."""
        path = self.directory / step_name(step)
        fingerprint = json.loads((path / STATE).read_text())["fingerprint"]
        about = json.loads((path / COMPLETE).read_text())
        return Checkpoint(path, step, fingerprint, Spent(**about.get("spent", {})), tuple(about.get("computed_on", ())))

    def _problem(self, step: int) -> str | None:
        path = self.directory / step_name(step)
        try:
            digests = json.loads((path / COMPLETE).read_text())["digests"]
            changed = [name for name, digest in digests.items() if sha256(path / name) != digest]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return str(error)
        return f"{', '.join(changed)} changed" if changed else None

    def _agreeing(self, checkpoint: Checkpoint) -> Checkpoint:
        expected, found = dict(self.fingerprint), dict(checkpoint.fingerprint)
        names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        if names:
            listed = "; ".join(
                f"{name}: {_short(found.get(name))} there, {_short(expected.get(name))} here" for name in names
            )
            hint = "give it again what it had there, or " if all(name.startswith(PREFIX) for name in names) else ""
            raise DataError(
                f"checkpoint {checkpoint.path} was trained on other data or by another recipe ({listed}); {hint}remove "
                f"all that begin with step_ in {self.directory} to train from the start"
            )
        return checkpoint

    def _drop_old(self) -> None:
        for step in self.steps()[:-RESUMABLE]:
            path = self.directory / step_name(step)
            if step in self.kept:
                for file in (file for pattern in OPTIMIZER_FILES for file in path.glob(pattern)):
                    file.unlink()
            else:
                shutil.rmtree(path)


def _tensors(directory: Path, *patterns: str) -> StoredTensors:
    return StoredTensors.of(sorted(path for pattern in patterns for path in directory.glob(pattern)))


def _write_shard(partial: Path, snapshot: Snapshot, host: Host) -> dict[str, str]:
    """Write and sync the rows of this process, if it has some; the digests of their files."""
    digests = {}
    for kind, pieces in (("weights", snapshot.weights), ("optimizer", snapshot.optimizer)):
        if pieces:
            path = partial / f"{kind}_{host.rank:05d}.safetensors"
            save_pieces(path, pieces)
            sync_entry(path)
            digests[path.name] = sha256(path)
    return digests


def _remove_strays(partial: Path, digests: Mapping[str, str]) -> None:
    """Remove rows that no process of this group wrote: those of a larger one, which was killed in this very step."""
    for path in (path for pattern in SHARDS for path in partial.glob(pattern)):
        if path.name not in digests:
            path.unlink()


def _write_main(partial: Path, snapshot: Snapshot) -> None:
    """Write what the main process alone has: the configuration and, unless each wrote its rows, all tensors."""
    if snapshot.sharded:
        save_shape(snapshot.model, partial)
        return
    save_model(snapshot.model, partial, {name: piece.tensor for name, piece in snapshot.weights.items()})
    save_file({name: piece.tensor for name, piece in snapshot.optimizer.items()}, partial / OPTIMIZER)


def _short(value: Any) -> str:
    """A value of a fingerprint for people; of a digest the start is enough."""
    return textwrap.shorten(repr(value), 60) if not isinstance(value, str) else repr(value[:16])


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Raise what safetensors says about a full or broken disk as the OSError it was."""
    try:
        yield
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), str(error), str(path)) from error
