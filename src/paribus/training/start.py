"""Start of a training: which checkpoint `start` names, whether it fits the run, and what a resumed training takes over.

Every disagreement is refused before anything runs, from JSON files alone; of tokens once the vocabulary is there.
`paribus plan` uses this, so nothing heavy may be imported here.

A run's own first training, with a smaller budget, that `start=continued` goes on from, is an artefact `training` like
any other, shared with every run that trains no longer. What it leaves is resumed: an artefact `training` keeps
optimizer, step and metrics beside its checkpoints, for the last of them alone. Steps are counted on, and whatever
follows from the number of a step with them: its contexts, its learning rate, the random numbers of dropout.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paribus.config.groups.model import (
    CheckpointStart,
    ContinuedStart,
    EncoderDecoderModel,
    ModelConfig,
    Part,
    ScratchStart,
    StartConfig,
)
from paribus.config.groups.training import amount_path, checkpoint_steps, unit_of
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.errors import DataError, Problem
from paribus.modeling.architecture import CONFIG, INDEX, STORED_NAMES, optional_fields, weight_files
from paribus.stage import JSON, StageContext
from paribus.store.artifacts import Store
from paribus.store.files import METRICS, RUN_RECORD, FileDigests, read_object
from paribus.tokenization.existing import SETTINGS


def check_start_state(config: RunConfig) -> list[Problem]:
    """(config path, what is wrong) of every disagreement; that there is no checkpoint, its fingerprint tells."""
    start = config.start
    if not isinstance(start, CheckpointStart):
        return []
    try:
        directory = checkpoint_directory(start)
    except DataError:
        return []
    try:
        problems = list(check_stored_model(config.model, directory, longer_context=start.longer_context))
        paths = {path for path, _ in problems}
        return problems + [problem for problem in check_resumed_state(config) if problem[0] not in paths]
    except DataError as error:
        return [Problem("start", str(error))]


def check_tokens(config: RunConfig, tokenizer: Path) -> list[Problem]:
    """(config path, what is wrong) of the run's vocabulary, once it is there, beside that of its checkpoint.

    Both are opened, so that a corpus is not encoded with tokens that its training will refuse. A checkpoint that is not
    there is told by its fingerprint.
    """
    start = config.start
    if not isinstance(start, CheckpointStart):
        return []
    from paribus.tokenization.existing import open_existing
    from paribus.training.vocabulary import token_problem

    try:
        directory = checkpoint_directory(start)
        problem = token_problem(open_existing(tokenizer), open_existing(directory), directory, start.vocabulary)
    except DataError:
        return []
    return [Problem("start.vocabulary", problem)] if problem else []


def checkpoint_directory(start: CheckpointStart) -> Path:
    """The directory with `config.json` and weights. DataError naming what is not there and what is."""
    if start.run is not None:
        where = f"start.run={start.run}"
        path = _run_directory(start.run, Path(start.root).expanduser() / "runs", where)
    else:
        where, path = f"start.path={start.path}", Path(start.path or "").expanduser()
    if not path.is_dir():
        raise DataError(f"{where}: no such directory")
    if (path / RUN_RECORD).is_file():
        path = _training_artefact(path, where)
    steps = checkpoint_directories(path)
    if steps:
        if start.step is not None and start.step not in steps:
            listed = ", ".join(map(str, steps))
            raise DataError(
                f"start.step={start.step}: no such checkpoint of {where}; there are those of steps {listed}"
            )
        return steps[list(steps)[-1] if start.step is None else start.step]
    if not (path / CONFIG).is_file():
        raise DataError(f"{where}: neither {CONFIG} nor step_* directories in it, so it is no checkpoint")
    name = STEP_NAME.fullmatch(path.name)
    if start.step is not None and (name is None or int(name[1]) != start.step):
        raise DataError(f"start.step={start.step}: {where} is a single checkpoint; leave start.step out")
    return path


def _run_directory(name: str, runs: Path, where: str) -> Path:
    """The directory of the run of this identifier, or of the only one whose identifier begins so."""
    if (runs / name / RUN_RECORD).is_file():
        return runs / name
    begun = sorted(path.parent for path in runs.glob(f"*/{RUN_RECORD}") if path.parent.name.startswith(name))
    if len(begun) > 1:
        raise DataError(f"{where}: may be any of {', '.join(path.name for path in begun)}; give more of its id")
    if not begun:
        raise DataError(f"{where}: no run of that id below {runs.resolve()}; start.root names the output root")
    return begun[0]


def _training_artefact(run: Path, where: str) -> Path:
    """The artefact `training` of a recorded run."""
    stages = read_object(run / RUN_RECORD).get("stages")
    if not isinstance(stages, dict) or "training" not in stages:
        raise DataError(f"{where}: the run has trained nothing yet (paribus status shows why)")
    root = run.resolve().parents[1]
    artefact = Store(root / "artifacts").find("training", str(stages["training"]["key"]))
    if artefact is None or not artefact.whole:
        how = (
            "were removed; paribus rerun makes them again" if artefact else f"are no longer below {root}; run it again"
        )
        raise DataError(f"{where}: its checkpoints {how}")
    return artefact.path


def start_fingerprint(config: StartConfig, digests: FileDigests) -> dict[str, JSON]:
    """SHA-256 of every file of the checkpoint, and of the state that is resumed, by name; nothing for random weights.

    DataError where files are missing.
    """
    if not isinstance(config, CheckpointStart):
        return {}
    from paribus.tokenization import existing

    directory = checkpoint_directory(config)
    index = [directory / INDEX] if (directory / INDEX).is_file() else []
    files = (directory / CONFIG, *weight_files(directory), *index)
    pins: dict[str, JSON] = {path.name: digests.of(path) for path in files}
    pins["tokenizer"] = existing.fingerprint(directory, digests)
    if config.optimizer == "resumed":
        pins["state"] = {path.name: digests.of(path) for path in resumed_state(config).files}
    return pins


_FIXED_FIELDS: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu", "attention_dropout": 0},
    "gpt_neox": {"attention_bias": True, "hidden_act": "gelu", "attention_dropout": 0, "hidden_dropout": 0},
}
"""Fields of config.json that must have these values, by family that can be continued; left out, they have them."""


def check_stored_model(model: ModelConfig, directory: Path, *, longer_context: bool) -> Iterator[Problem]:
    """(config path, both values and what would be right) of everything in which the two are not one model.

    What the group `model` says and what would change the number of parameters must agree. What it does not say, such as
    the epsilon of a norm, is the checkpoint's own and stays so.
    """
    file = directory / CONFIG
    stored = read_object(file)
    family = stored.get("model_type")
    if family not in _FIXED_FIELDS:
        message = f"{file} is of model_type {family!r}; one of {', '.join(_FIXED_FIELDS)} can be continued"
        yield Problem("start", message)
        return
    if family != model.kind:
        yield Problem("model.kind", f"{model.kind}, but {family} in {file}; they must agree")
        return
    theirs = {name: stored.get(STORED_NAMES[name]) for name in ("width", "layers", "heads", "ffn_width")}
    for name, value in (theirs | optional_fields(stored)).items():
        if (ours := getattr(model, name)) != value:
            yield Problem(f"model.{name}", f"{ours}, but {value} in {file}; they must agree")
    length, seen = model.context_length, stored.get("max_position_embeddings")
    if not isinstance(seen, int) or (length > seen and not longer_context):
        message = f"{length} is longer than the {seen} of {file}, whose positions beyond were never trained"
        yield Problem("model.context_length", f"{message}; take {seen} or less, or say start.longer_context=true")
    yield from _unsupported_fields(stored, family, file)


def _unsupported_fields(stored: Mapping[str, Any], family: str, file: Path) -> Iterator[Problem]:
    """Problems with stored values that change the model and that no field of the group can say."""
    heads = stored.get("num_attention_heads") or 1
    rope = stored.get("rope_parameters") or stored.get("rope_scaling") or {}
    width = stored.get("hidden_size") or 0
    fixed = _FIXED_FIELDS[family] | {"num_key_value_heads": heads, "head_dim": width // heads, "rope_type": "default"}
    values = {**stored, "rope_type": rope.get("rope_type", rope.get("type", "default"))}
    for name, expected in fixed.items():
        if (value := values.get(name)) is not None and value != expected:
            yield Problem("start", f"{file} has {name}={value!r}; only {expected!r} can be continued")


FIRST = "first_training"


def has_first(config: RunConfig) -> bool:
    """True if a run goes on from a training of its own."""
    return isinstance(config.start, ContinuedStart)


def first_config(config: RunConfig) -> RunConfig:
    """The configuration of a run's first training; that of a run without one as it is.

    ValueError where `start` does not say how much of the budget is the first training's.
    """
    if not isinstance(config.start, ContinuedStart):
        return config
    unit, amount = unit_of(config.budget), first_amount(config)
    if amount is None:
        raise ValueError(f"start.{unit} is not given")
    amounts: dict[str, Any] = {unit: amount}
    return replace(config, start=ScratchStart(kind="scratch"), budget=replace(config.budget, **amounts))


def first_amount(config: RunConfig) -> int | None:
    """How much of the budget a run's first training has, in the budget's unit; None where nothing says so."""
    return getattr(config.start, unit_of(config.budget)) if isinstance(config.start, ContinuedStart) else None


def begun(context: StageContext) -> StageContext:
    """The context of a training that resumes the one among its inputs, where its start is its own first training."""
    if not has_first(context.config):
        return context
    start = CheckpointStart(
        kind="checkpoint",
        path=str(context.inputs[FIRST]),
        run=None,
        step=None,
        root=context.config.root,
        vocabulary="same",
        optimizer="resumed",
        longer_context=False,
    )
    return replace(context, config=replace(context.config, start=start))


EVERY_SEED = "start=continued makes both trainings of every seed"
_CONTEXT_FIELDS = (
    "seeds.contexts", "tokens", "documents", "ids", "offsets", "source_lengths", "order", "groups", "contexts",
)  # fmt: skip
"""Fields of a fingerprint that decide, beside `_COUNTED`, which contexts a step reads."""
_STEP_FIELDS = ("model.context_length", "training.global_batch")
"""How far in the sequence of contexts a number of steps leads; 0 where bytes of text decide it later."""


@dataclass(frozen=True)
class ResumedState:
    """State that a training left after `step` steps."""

    artefact: Path
    checkpoint: Path
    """Hugging Face directory of the checkpoint."""
    step: int
    fingerprint: Mapping[str, Any]
    """Fingerprints of data and recipe, by names."""

    @property
    def directory(self) -> Path:
        """Directory of the optimizer's state."""
        return self.artefact / STATE_DIRECTORY

    @property
    def metrics(self) -> Path:
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
    state = ResumedState(artefact, checkpoint, step, fingerprint)
    missing = [path for path in state.files if not path.is_file()]
    if missing:
        raise DataError(f"resumed, but {', '.join(map(str, missing))} is missing, which the training wrote")
    return state


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


def check_resumed_state(config: RunConfig) -> Iterator[Problem]:
    """(config path, both values) of everything in which a resumed run must agree with the first one and does not.

    Sizes that bytes of text decide are judged once they are known.
    """
    start = resuming(config)
    if start is None:
        return
    try:
        state = resumed_state(start)
    except DataError as error:
        yield Problem("start.optimizer", str(error))
        return
    # With another encoder the same text has other tokens.
    settings = state.checkpoint / "tokenizer" / SETTINGS
    theirs = read_object(settings).get("encoder") if settings.is_file() else None
    if theirs is not None and theirs != config.encoder.kind:
        yield Problem(
            "encoder",
            f"{config.encoder.kind}, but {theirs} in the training that start.optimizer=resumed goes on with, whose "
            "contexts would be others; take the same, or start.optimizer=fresh",
        )
    ours: dict[str, Any] = {
        f"{group}.{name}": value
        for group in ("training", "model", "packing")
        for name, value in identity(getattr(config, group)).items()
    }
    ours["seeds.contexts"] = config.seed_of("contexts")
    counted = "steps are counted on, and it decides how much text they are"
    packing = [path for path in ours if path.startswith("packing.") and path != "packing.attention"]
    reasons = {
        "training.kind": "the moments of one optimizer are none of another",
        "seeds.contexts": f"it decides which contexts were read, so take that; {EVERY_SEED}",
    } | dict.fromkeys((*_STEP_FIELDS, *packing), counted)
    for path, reason in reasons.items():
        here, stored = ours.get(path), state.fingerprint.get(path)
        if here != stored and not (path in _STEP_FIELDS and here == 0):
            message = f"{here}, but {stored} in the training that start.optimizer=resumed goes on with; {reason}"
            yield Problem(path, message)


def resume_message(state: ResumedState) -> str:
    """Message of what a run takes from the first one."""
    where = f"step {state.step:,} of {state.artefact}"
    return f"training goes on from {where}, with its optimizer, in the text where it stopped"


def check_steps_left(config: RunConfig, state: ResumedState, steps: int) -> Iterator[Problem]:
    """(config path, what would be right) of a budget of `steps` that leaves nothing to train."""
    if steps <= state.step:
        counted = "with start.optimizer=resumed a budget is that of both trainings together, so take a larger one"
        yield Problem(amount_path(config.budget), f"it ends after step {steps}, and {state.step} are done; {counted}")


def check_checkpoints_left(config: RunConfig, first: int, steps: int) -> Iterator[Problem]:
    """(config path, what would be right) of checkpoints to be scored up to step `first`, another's last."""
    number = config.evaluation.checkpoints_read
    scored = checkpoint_steps(config.training.checkpoints, steps, number)
    if first < steps and (early := [each for each in scored if each <= first]):
        later = f"take {len(scored) - len(early)} or less, or a larger training.checkpoints"
        yield Problem(
            config.evaluation.checkpoints_path,
            f"{number} are to be scored or averaged, and the first {len(early)} would stand where the training that is "
            f"gone on from was not over; {later}",
        )


def check_resumed_data(state: ResumedState, fingerprint: Mapping[str, Any]) -> Iterator[Problem]:
    """(config path, what would be right) of a run of that fingerprint whose contexts are not those of the first one.

    The steps of both are counted by the contexts of one: of others, text would be told that neither has read.
    """
    other = [name for name in _CONTEXT_FIELDS if state.fingerprint.get(name) != fingerprint.get(name)]
    if other:
        yield Problem(
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


OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
STATE_DIRECTORY = "state"
"""Directory in an artefact `training`: the optimizer after the last step, with the step and the fingerprint."""
STEP_NAME = re.compile(r"step_(\d{8,})")


def checkpoint_directories(directory: Path) -> dict[int, Path]:
    """Checkpoints in a directory by step, ascending."""
    named = ((STEP_NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return dict(sorted((int(name[1]), path) for name, path in named if name))


def training_seeds(config: RunConfig) -> dict[Part, int]:
    """Seeds by part: weights that begin at random, contexts that are shuffled, dropout of a model that has any.

    No other seed belongs into the key of a training, lest one training pass for several.
    """
    parts: list[Part] = ["weights"] if isinstance(config.start, ScratchStart) else []
    parts += ["contexts"] if config.packing.shuffle != "none" else []
    return {part: config.seed_of(part) for part in [*parts, *_dropout_part(config)]}


def finetuning_seeds(config: RunConfig) -> dict[Part, int]:
    """Seeds by part: examples are always shuffled."""
    parts: list[Part] = ["contexts", *_dropout_part(config)]
    return {part: config.seed_of(part) for part in parts}


def _dropout_part(config: RunConfig) -> list[Part]:
    model = config.model
    drops = isinstance(model, EncoderDecoderModel) and bool(model.dropout or model.attention_dropout)
    return ["dropout"] if drops else []
