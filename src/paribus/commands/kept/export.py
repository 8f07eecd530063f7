"""The verb `paribus export`: the model of a run as a Hugging Face directory, with a card that says how it was made."""

import errno
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from paribus.commands.kept.exported_files import complete
from paribus.commands.kept.model_card import CARD, Origin, model_card
from paribus.config.arguments import HELP_FLAGS, read_options
from paribus.config.fields import proper_path
from paribus.config.units import format_size
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.graph import EVALUATION, FINETUNING
from paribus.pipeline.records import UNREADABLE, command_line, find_run_id, is_reference, read_run_record
from paribus.pipeline.root import OutputRoot, named_root
from paribus.store import files
from paribus.store.artifacts import Artifact
from paribus.store.files import METRICS, sha256
from paribus.training.start import checkpoint_directories

TRAINING = "training"
HELP = """usage: paribus export RUN DIR [step=N] [root=paribus_runs]

Write the model of a run into DIR as Hugging Face has it: weights, config.json, tokenizer, and README.md, a model card
with its scores, the command and configuration that made it, and the commit. It is the last checkpoint, or the one of
step=N. DIR may not be there yet, or be empty; it appears whole or not at all. The licence is left to you.

Beside a checkpoint in the root it generates with a cache, and its tokenizer knows the context length, pads (with the
special token called padding, else with the one that ends a document) and takes special tokens that are spelled in a
prompt for these tokens; split_special_tokens=True leaves them text, as in a corpus.

RUN is an identifier as `paribus status` shows it, the beginning of one, or last, the newest run. Tokenizers that
tokenizer.json cannot hold, as those of longest_first and of Scaffold-BPE, need paribus: the card has the lines for it.

  paribus export last my_model
  paribus export 01234567 my_model step=125
  paribus export 01234567 my_model root=my/runs

exit status: 0; 1 its checkpoints are not there; 2 refused
"""


@dataclass(frozen=True)
class Wanted:
    """What is to be exported, and where to."""

    name: str
    target: Path
    root: OutputRoot
    step: int | None


def export_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus export RUN DIR`: ConfigurationError for what cannot be asked, DataError without checkpoints."""
    if HELP_FLAGS & set(arguments):
        console.print(HELP, end="", markup=False, highlight=False, soft_wrap=True)
        return 0
    wanted = parse(arguments)
    if wanted.target.exists() and (not wanted.target.is_dir() or any(wanted.target.iterdir())):
        raise _taken(wanted.target)
    run_id = find_run_id(wanted.name, wanted.root.path)
    record = _record(run_id, wanted.root)
    training = _training(record, run_id, wanted)
    step, checkpoint = _checkpoint(training, wanted.step)
    origin = Origin(
        run_id=run_id,
        record=record,
        step=step,
        command=command_line(run_id, wanted.root.path),
        training=training.record(),
        scores=_scores(record, step, wanted.root),
    )
    with _parents_of(wanted.target), _alone(wanted.target), files.replacing(wanted.target) as aside:
        _copy(training, checkpoint, aside)
        complete(aside)
        (aside / CARD).write_text(model_card(origin, aside, wanted.target.name), encoding="utf-8")
        size = sum(path.stat().st_size for path in aside.rglob("*") if path.is_file())
    told = f"{wanted.target}: step {step:,} of run {run_id}, {format_size(size)}; see {CARD} there for how to load it"
    console.print(told, markup=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str]) -> Wanted:
    """What the arguments ask for; ConfigurationError for what they cannot."""
    names = [argument for argument in arguments if is_reference(argument)]
    others = [argument for argument in arguments if argument not in names]
    options = read_options(others, ("root", "step"))
    if len(names) != 2:
        raise ConfigurationError("export takes a run and a directory: paribus export last my_model")
    step = options.get("step")
    if step is not None and not step.isdecimal():
        raise ConfigurationError(f"step={step}: a step is a whole number, as in the names of checkpoints")
    try:
        target = Path(proper_path(names[1])).expanduser()
    except ValueError as error:
        raise ConfigurationError(f"export: {error}") from error
    root = named_root(options.get("root"))
    return Wanted(names[0], target, root, None if step is None else int(step))


def _record(run_id: str, root: OutputRoot) -> Mapping[str, Any]:
    record = read_run_record(root.run(run_id))
    if record is None:
        raise DataError(f"run {run_id} was not begun; paribus status shows how it stands")
    if record["status"] == UNREADABLE:
        raise DataError(record["failure"]["message"])
    return record


def _training(record: Mapping[str, Any], run_id: str, wanted: Wanted) -> Artifact:
    if TRAINING not in record["stages"]:
        raise DataError(f"run {run_id} has no training yet: it is {record['status']}; see `paribus status {run_id}`")
    key, store = str(record["stages"][TRAINING]["key"]), wanted.root.store
    found = store.find(TRAINING, key)
    if found is not None and not found.whole:
        raise DataError(
            f"the checkpoints of run {run_id} were removed; `paribus rerun {run_id} root={wanted.root.path}` makes it "
            f"again in a root of its own below {wanted.root.reruns}, which root=... then names here"
        )
    return found or store.require(TRAINING, key)


def _checkpoint(training: Artifact, wanted: int | None) -> tuple[int, Path]:
    """The checkpoint of a step, or the last one."""
    steps = checkpoint_directories(training.path)
    if not steps:
        raise DataError(f"{training.path} has no checkpoints")
    step = max(steps) if wanted is None else wanted
    if step not in steps:
        raise ConfigurationError(
            f"step={step}: no such checkpoint; there are those of steps {', '.join(map(str, steps))}"
        )
    return step, steps[step]


def _scores(record: Mapping[str, Any], step: int, root: OutputRoot) -> dict[str, float]:
    """Every number that was logged of a checkpoint, by name; none of one that was not scored."""
    found: dict[str, float] = {}
    for stage in (EVALUATION, FINETUNING):
        artefact = root.store.find(stage, str(record["stages"][stage]["key"])) if stage in record["stages"] else None
        path = artefact.path / METRICS if artefact else None
        for line in path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else ():
            values = json.loads(line)
            found |= {name: float(value) for name, value in values.items() if name != "step" and values["step"] == step}
    return found


def _copy(training: Artifact, checkpoint: Path, target: Path) -> None:
    """Copy a checkpoint; DataError where the copy is not what was published."""
    digests = training.record()["files"]
    for path in sorted(path for path in checkpoint.rglob("*") if path.is_file()):
        name = path.relative_to(training.path).as_posix()
        copied = target / path.relative_to(checkpoint)
        copied.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, files.naming(copied), copied.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        if sha256(copied) != digests[name]["sha256"]:
            raise DataError(
                f"{training.path / name} differs from its digest; `paribus clean --verify` sets the training aside"
            )


def _taken(target: Path) -> ConfigurationError:
    return ConfigurationError(f"{target} is there and not empty; name a directory that is not there yet")


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """ConfigurationError where another export made `target` meanwhile."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise _taken(target) from error
        raise


@contextmanager
def _parents_of(target: Path) -> Iterator[None]:
    """Make the directories above `target`; those that were made go again where the block fails."""
    made = [parent for parent in target.absolute().parents if not parent.exists()]
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise
