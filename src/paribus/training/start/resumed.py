"""The state of another training that `start.optimizer=resumed` goes on with: optimizer, step and metrics.

An artefact `training` keeps it beside its checkpoints, for the last of them alone. Steps are counted on, and whatever
follows from the number of a step with them: its contexts, its learning rate, the random numbers of dropout.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.config.groups.model import CheckpointStart
from paribus.config.groups.training import amount_path, checkpoint_steps
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.stage import JSON
from paribus.store.files import METRICS, FileDigests, read_object
from paribus.tokenization.existing import SETTINGS
from paribus.training.start.locate import checkpoint_directory
from paribus.training.state.file_names import OPTIMIZER, STATE, STATE_DIRECTORY, STEP_NAME

EVERY_SEED = "start=continued makes both trainings of every seed"
_READ = ("seeds.contexts", "tokens", "documents", "ids", "offsets", "source_lengths", "order", "groups", "contexts")
"""Of a fingerprint what decides, beside `_COUNTED`, which contexts a step reads."""
_COUNTED = ("model.context_length", "training.global_batch")
"""How far in the sequence of contexts a number of steps leads; 0 where bytes of text decide it later."""


@dataclass(frozen=True)
class ResumedState:
    """What a training left after `step` steps."""

    artefact: Path
    checkpoint: Path
    """Its Hugging Face directory."""
    step: int
    fingerprint: Mapping[str, Any]
    """Of data and recipe, by names."""

    @property
    def directory(self) -> Path:
        """With the optimizer's state."""
        return self.artefact / STATE_DIRECTORY

    @property
    def metrics(self) -> Path:
        """The metrics of the steps, a line each."""
        return self.artefact / METRICS

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that is gone on with beside the checkpoint."""
        return self.directory / OPTIMIZER, self.directory / STATE, self.metrics


def resumed_state(start: CheckpointStart) -> ResumedState:
    """The state that stands beside the checkpoint. DataError where it does not, with what would have kept it."""
    checkpoint = checkpoint_directory(start)
    artefact, named = checkpoint.parent, STEP_NAME.fullmatch(checkpoint.name)
    file = artefact / STATE_DIRECTORY / STATE
    if named is None or not file.is_file():
        raise DataError(
            f"resumed, but beside {checkpoint} there is no {STATE_DIRECTORY}/{STATE}: weights alone go on with "
            "start.optimizer=fresh, and the optimizer is in the artefact of a training that paribus finished, so name "
            "that by start.run or by its directory"
        )
    stored = read_object(file)
    step, fingerprint = stored.get("step"), stored.get("fingerprint")
    if not isinstance(step, int) or not isinstance(fingerprint, dict):
        raise DataError(f"{file}: no step and fingerprint in it, so it is not what a training wrote")
    if step != int(named[1]):
        raise DataError(
            f"resumed, but {artefact} keeps the optimizer of its last step, {step}, and not of step {int(named[1])}: "
            "leave start.step out, train the first run to that step alone, or take start.optimizer=fresh"
        )
    found = ResumedState(artefact, checkpoint, step, fingerprint)
    missing = [path for path in found.files if not path.is_file()]
    if missing:
        raise DataError(f"resumed, but {', '.join(map(str, missing))} is missing, which the training wrote")
    return found


def steps_before(config: RunConfig) -> int:
    """Steps of another training that count as the run's; 0 where it begins by itself, or nothing says yet."""
    start = resuming(config)
    try:
        return resumed_state(start).step if start else 0
    except DataError:
        return 0


def resuming(config: RunConfig) -> CheckpointStart | None:
    """The start of a run that goes on with the optimizer and the steps of another one; None of any other."""
    start = config.start
    return start if isinstance(start, CheckpointStart) and start.optimizer == "resumed" else None


def state_fingerprint(start: CheckpointStart, digests: FileDigests) -> dict[str, JSON]:
    """SHA-256 of the files of the state by name; nothing for an optimizer that starts afresh."""
    if start.optimizer == "fresh":
        return {}
    return {"state": {path.name: digests.of(path) for path in resumed_state(start).files}}


def state_problems(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(config path, both values) of everything in which a resumed run must agree with the first one and does not.

    Sizes that bytes of text decide are judged once they are known.
    """
    start = resuming(config)
    if start is None:
        return
    try:
        state = resumed_state(start)
    except DataError as error:
        yield "start.optimizer", str(error)
        return
    yield from _encoder_problems(config, state)
    ours: dict[str, Any] = {
        f"{group}.{name}": value
        for group in ("training", "model", "packing")
        for name, value in identity(getattr(config, group)).items()
    }
    ours["seeds.contexts"] = config.seed_of("contexts")
    for path, reason in _agreeing(ours):
        here, there = ours.get(path), state.fingerprint.get(path)
        if here != there and not (path in _COUNTED and here == 0):
            yield path, f"{here}, but {there} in the training that start.optimizer=resumed goes on with; {reason}"


def _encoder_problems(config: RunConfig, state: ResumedState) -> Iterator[tuple[str, str]]:
    """(config path, both values) of another encoder than the first run's, with which the same text has other tokens."""
    settings = state.checkpoint / "tokenizer" / SETTINGS
    theirs = read_object(settings).get("encoder") if settings.is_file() else None
    if theirs is not None and theirs != config.encoder.kind:
        yield (
            "encoder",
            f"{config.encoder.kind}, but {theirs} in the training that start.optimizer=resumed goes on with, whose "
            "contexts would be others; take the same, or start.optimizer=fresh",
        )


def told_of(state: ResumedState) -> str:
    """What a run takes from the first one."""
    told = f"training goes on from step {state.step:,} of {state.artefact}"
    return f"{told}, with its optimizer, in the text where it stopped"


def past_problems(config: RunConfig, state: ResumedState, steps: int) -> Iterator[tuple[str, str]]:
    """(config path, what would be right) of a budget of `steps` that leaves nothing to train."""
    if steps <= state.step:
        counted = "with start.optimizer=resumed a budget is that of both trainings together, so take a larger one"
        yield (
            amount_path(config.budget),
            f"it ends after step {steps}, and {state.step} are done; {counted}",
        )


def unscored_problems(config: RunConfig, first: int, steps: int) -> Iterator[tuple[str, str]]:
    """(config path, what would be right) of checkpoints to be scored up to step `first`, another's last."""
    wanted = config.evaluation.checkpoints_read
    scored = checkpoint_steps(config.training.checkpoints, steps, wanted)
    if first < steps and (early := [each for each in scored if each <= first]):
        later = f"take {len(scored) - len(early)} or less, or a larger training.checkpoints"
        yield (
            config.evaluation.checkpoints_path,
            f"{wanted} are to be scored or averaged, and the first {len(early)} would stand where the training that is "
            f"gone on from was not over; {later}",
        )


def data_problems(state: ResumedState, fingerprint: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(config path, what would be right) of a run of that fingerprint whose contexts are not those of the first one.

    The steps of both are counted by the contexts of one: of others, text would be told that neither has read.
    """
    other = [name for name in _READ if state.fingerprint.get(name) != fingerprint.get(name)]
    if other:
        yield (
            "start.optimizer",
            f"resumed, but the contexts of {state.artefact} are others ({', '.join(other)}), and this run would count "
            "them as read; take the first run's corpus, tokenizer, encoder, order and seed, or start.optimizer=fresh",
        )


def metrics_before(state: ResumedState, path: Path) -> None:
    """Put the lines of the first steps into the metrics file `path`, unless they are there."""
    if path.is_file() and path.stat().st_size >= state.metrics.stat().st_size:
        return
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(state.metrics.read_bytes())
    partial.replace(path)


def _agreeing(ours: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Paths of the fields that must be equal, and why."""
    yield "training.kind", "the moments of one optimizer are none of another"
    yield "seeds.contexts", f"it decides which contexts were read, so take that; {EVERY_SEED}"
    counted = "steps are counted on, and it decides how much text they are"
    yield from ((path, counted) for path in _COUNTED)
    yield from ((path, counted) for path in ours if path.startswith("packing.") and path != "packing.attention")
