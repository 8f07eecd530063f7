"""Checkpoints that appear whole or not at all, and from which training continues exactly.

A checkpoint is a directory `step_00000123`: the model as a Hugging Face directory, `optimizer.safetensors`,
`state.json` (step, and fingerprint of data and recipe) and `complete.json` (digest of every file; time of training
so far, and what it was computed on). Where processes share the weights, each writes the rows that it has, in
`weights_00000.safetensors` and `optimizer_00000.safetensors`: none ever holds the whole.

A snapshot is copied out of the model and the optimizer, so that training goes on while a thread writes it.
"""

import json
import logging
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor

from paribus.errors import DataError
from paribus.modeling.architecture import CONFIG, WEIGHTS, Architecture, read_architecture
from paribus.modeling.decoder import Decoder, huggingface_rows
from paribus.modeling.models import save_model, save_shape
from paribus.store.files import publish_directory, read_object, sha256, sync_entry, write_json
from paribus.training.distributed import ALONE, Host
from paribus.training.metrics import MetricsFile, Spent
from paribus.training.parallel import DETERMINISM_PREFIX
from paribus.training.sharded import Piece, StoredTensors, is_first_replica, local_rows, placed, save_pieces
from paribus.training.start import OPTIMIZER, STATE, checkpoint_directories

COMPLETE_RECORD = "complete.json"
WEIGHT_SHARDS = "weights_*.safetensors"
OPTIMIZER_SHARDS = "optimizer_*.safetensors"
SHARDS = (WEIGHT_SHARDS, OPTIMIZER_SHARDS)
OPTIMIZER_FILES = (OPTIMIZER, OPTIMIZER_SHARDS)
"""Patterns of file names: whole tensors, or the rows of each process."""
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
    """Directory of the optimizer's state; None: with the weights."""

    @property
    def sharded(self) -> bool:
        """True if processes wrote their rows, so that there is no model as Hugging Face has it."""
        return any(self.path.glob(WEIGHT_SHARDS))

    @property
    def architecture(self) -> Architecture:
        return read_architecture(read_object(self.path / CONFIG))

    def weights(self) -> StoredTensors:
        """The parameters of a `Decoder`, by its names."""
        if self.sharded:
            return _stored_tensors(self.path, WEIGHT_SHARDS)
        return StoredTensors.of([self.path / WEIGHTS], huggingface_rows(self.architecture))

    def optimizer(self) -> StoredTensors:
        """The optimizer's state, as a `Snapshot` names it."""
        return _stored_tensors(self.optimizer_directory or self.path, *OPTIMIZER_FILES)

    def model_files(self) -> list[Path]:
        """The files of the Hugging Face directory, sorted; those of a sharded one lack the weights."""
        files = set(self.path.iterdir()) - {self.path / STATE, self.path / COMPLETE_RECORD}
        return sorted(files - {path for name in (WEIGHT_SHARDS, *OPTIMIZER_FILES) for path in self.path.glob(name)})


@dataclass(frozen=True)
class Snapshot:
    """Copies of tensors on the CPU: whole, or of a sharded model the rows of this process."""

    model: Any
    """Unwrapped, whose configuration is written beside the weights."""
    weights: dict[str, Piece]
    optimizer: dict[str, Piece]
    sharded: bool
    """True if every process has a snapshot, of its own rows, which may be none."""


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run in `directory`; those after `kept` steps stay, of the others the newest two."""

    directory: Path
    kept: frozenset[int]
    """Steps whose checkpoints the run is made for; the others serve to resume."""
    fingerprint: Mapping[str, Any]
    damaged: list[str] = field(default_factory=list)
    """Names of checkpoints that `newest` found damaged and passed over."""
    computed_on: list[str] = field(default_factory=list)
    """Device and precision of each part of this training, those before it was resumed included."""

    def go_on(self, resumed: Checkpoint | None, here: str) -> None:
        """Record that what follows is computed `here`, after the parts that the resumed checkpoint records."""
        self.computed_on[:] = dict.fromkeys((*(resumed.computed_on if resumed else ()), here))

    def save(self, step: int, snapshot: Snapshot, spent: Spent, host: Host = ALONE) -> None:
        """Write the checkpoint after `step` steps aside, sync and rename it, and drop what is no longer needed.

        Every process that has a snapshot takes part, in a thread beside the steps; returns once the checkpoint exists.
        """
        final = self.directory / step_name(step)
        partial = self.directory / f"{final.name}.partial"
        partial.mkdir(exist_ok=snapshot.sharded)
        with _disk_errors(partial):
            written = _write_shard(partial, snapshot, host) if snapshot.sharded else {}
            digests = host.gathered_by_writers(written) if snapshot.sharded else {}
            if host.main and snapshot.sharded:
                save_shape(snapshot.model, partial)
            elif host.main:
                save_model(snapshot.model, partial, {name: piece.tensor for name, piece in snapshot.weights.items()})
                save_file({name: piece.tensor for name, piece in snapshot.optimizer.items()}, partial / OPTIMIZER)
        if host.main:
            write_json(partial / STATE, {"step": step, "fingerprint": dict(self.fingerprint)})
            # Rows that no process of this group wrote are of a larger group, which was killed while it saved this step.
            for path in (path for pattern in SHARDS for path in partial.glob(pattern)):
                if path.name not in digests:
                    path.unlink()
            digests |= {path.name: sha256(path) for path in sorted(partial.iterdir()) if path.name not in digests}
            record = {"digests": digests, "spent": asdict(spent), "computed_on": list(self.computed_on)}
            write_json(partial / COMPLETE_RECORD, record)
            publish_directory(partial, final)
            self._drop_old()
        if snapshot.sharded:
            host.gathered_by_writers({})

    def steps(self) -> list[int]:
        return list(checkpoint_directories(self.directory))

    def discard_after(self, step: int) -> None:
        """Remove checkpoints of more than `step` steps and what a killed process left half written."""
        names = {step_name(saved) for saved in self.steps() if saved <= step}
        for path in self.directory.glob("step_*"):
            if path.name not in names:
                shutil.rmtree(path)

    def newest(self, limit: int) -> Checkpoint | None:
        """The newest undamaged checkpoint of at most `limit` steps; damaged ones are logged and passed over.

        Raises DataError if it was trained on other data, or by another recipe, than `fingerprint` describes.
        """
        for step in reversed([step for step in self.steps() if step <= limit]):
            damage = self._damage(step)
            if damage is None:
                checkpoint = self.read(step)
                self._check_fingerprint(checkpoint)
                return checkpoint
            self.damaged.append(step_name(step))
            logger.warning("checkpoint %s is damaged (%s): going back", self.directory / step_name(step), damage)
        return None

    def read(self, step: int) -> Checkpoint:
        """The checkpoint after `step` steps, not verified."""
        path = self.directory / step_name(step)
        fingerprint, record = read_object(path / STATE)["fingerprint"], read_object(path / COMPLETE_RECORD)
        spent, computed_on = Spent(**record.get("spent", {})), tuple(record.get("computed_on", ()))
        return Checkpoint(path, step, fingerprint, spent, computed_on)

    def _damage(self, step: int) -> str | None:
        path = self.directory / step_name(step)
        try:
            digests = json.loads((path / COMPLETE_RECORD).read_text())["digests"]
            changed = [name for name, digest in digests.items() if sha256(path / name) != digest]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return str(error)
        return f"{', '.join(changed)} changed" if changed else None

    def _check_fingerprint(self, checkpoint: Checkpoint) -> None:
        expected, stored = dict(self.fingerprint), dict(checkpoint.fingerprint)
        names = sorted(name for name in expected.keys() | stored.keys() if expected.get(name) != stored.get(name))
        if names:
            listed = "; ".join(
                f"{name}: {_shortened(stored.get(name))} there, {_shortened(expected.get(name))} here" for name in names
            )
            fixed = all(name.startswith(DETERMINISM_PREFIX) for name in names)
            hint = "give it again what it had there, or " if fixed else ""
            raise DataError(
                f"checkpoint {checkpoint.path} was trained on other data or by another recipe ({listed}); {hint}remove "
                f"all that begin with step_ in {self.directory} to train from the start"
            )

    def _drop_old(self) -> None:
        for step in self.steps()[:-RESUMABLE]:
            path = self.directory / step_name(step)
            if step in self.kept:
                for file in (file for pattern in OPTIMIZER_FILES for file in path.glob(pattern)):
                    file.unlink()
            else:
                shutil.rmtree(path)


def _stored_tensors(directory: Path, *patterns: str) -> StoredTensors:
    return StoredTensors.of(sorted(path for pattern in patterns for path in directory.glob(pattern)))


def _write_shard(partial: Path, snapshot: Snapshot, host: Host) -> dict[str, str]:
    """Write and sync the rows of this process, if it has any; the digests of their files."""
    digests = {}
    for kind, pieces in (("weights", snapshot.weights), ("optimizer", snapshot.optimizer)):
        if pieces:
            path = partial / f"{kind}_{host.rank:05d}.safetensors"
            save_pieces(path, pieces)
            sync_entry(path)
            digests[path.name] = sha256(path)
    return digests


def _shortened(value: Any) -> str:
    """A value of a fingerprint for a message; of a text, such as a digest, the first 16 characters."""
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


MOMENTS = ("exp_avg", "exp_avg_sq")
OPTIMIZER_STATE = ("step", *MOMENTS)


def take_snapshot(model: Any, optimizer: torch.optim.Optimizer, *, main: bool) -> Snapshot | None:
    """The part of an unwrapped model and its optimizer that this process has to write; None for nothing.

    Of a `Decoder` that processes share, each writes its rows; of any other model the main process writes the whole,
    which is gathered from all where it is shared, so every process must call this.
    """
    tensors, stored = dict(model.named_parameters()) | dict(model.named_buffers()), model.state_dict().keys()
    named = {name: tensor for name, tensor in tensors.items() if name in stored}
    moments = _optimizer_state(model, optimizer)
    if isinstance(model, Decoder) and any(isinstance(parameter, DTensor) for parameter in model.parameters()):
        return Snapshot(model, _rows(named, main=main), _rows(moments, main=main), sharded=True)
    weights, state = _whole(named, main=main), _whole(moments, main=main)
    return Snapshot(model, weights, state, sharded=False) if main else None


def _optimizer_state(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The state as `exp_avg.<parameter>` and so on; nothing before the first step."""
    return {
        f"{kind}.{name}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(model: Any, optimizer: torch.optim.Optimizer, tensors: StoredTensors) -> None:
    """Restore the optimizer state of a snapshot, on the devices and with the shards of the parameters."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, torch.Tensor]] = {}
    for number, parameter in enumerate(ordered):
        for kind in OPTIMIZER_STATE:
            if (name := f"{kind}.{names[parameter]}") in tensors:
                state.setdefault(number, {})[kind] = placed(tensors, name, parameter)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _rows(tensors: Mapping[str, torch.Tensor], *, main: bool) -> dict[str, Piece]:
    """Copies of the rows that this process writes; the main process also writes the tensors that are not shared."""
    copies: dict[str, Piece] = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, DTensor):
            start, stop = local_rows(tensor)
            if start < stop and is_first_replica(tensor):
                copies[name] = Piece(_copy(tensor.to_local()), start, tuple(tensor.shape))
        elif main:
            copies[name] = Piece(_copy(tensor), 0, tuple(tensor.shape))
    return copies


def _whole(tensors: Mapping[str, torch.Tensor], *, main: bool) -> dict[str, Piece]:
    copies: dict[str, Piece] = {}
    for name, tensor in tensors.items():
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        if main:
            copies[name] = Piece(_copy(whole), 0, tuple(whole.shape))
    return copies


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


class CheckpointWriter:
    """Writes one checkpoint at a time; leaving the block waits for the last one."""

    def __init__(self, checkpoints: Checkpoints, metrics: MetricsFile, host: Host) -> None:
        self._checkpoints, self._metrics, self._host = checkpoints, metrics, host
        self._pool = ThreadPoolExecutor(1, "checkpoints")
        self._pending: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if error is None:
            self.finish()

    def write(self, step: int, snapshot: Snapshot, spent: Spent) -> None:
        """Write the checkpoint after `step` steps once the one before it is written."""
        self.finish()
        self._pending = self._pool.submit(self._write, step, snapshot, spent)

    def finish(self) -> None:
        """Wait for the checkpoint that is being written, and raise what went wrong with it."""
        if self._pending:
            self._pending.result()

    def check(self) -> None:
        """Raise what went wrong with the checkpoint that was written last, if that is known already."""
        if self._pending and self._pending.done():
            self._pending.result()

    def _write(self, step: int, snapshot: Snapshot, spent: Spent) -> None:
        if self._host.main:
            self._metrics.sync()
        self._checkpoints.save(step, snapshot, spent, self._host)
