"""Start of a training: which checkpoint `start` names, whether it fits the run, and what a resumed training takes over.

Every disagreement is refused before anything runs, from JSON files alone; those of tokens once the vocabulary exists.
`paribus plan` uses this, so nothing heavy may be imported here.

With `start=continued` a run resumes a first training of its own, with a smaller budget. That is an artefact `training`
like any other, shared with every run that trains no longer. Beside its checkpoints an artefact `training` keeps
optimizer, step and metrics, for the last of them alone. Steps are counted on, and with them whatever follows from the
number of a step: its contexts, its learning rate, the random numbers of dropout.
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
    """Problems of every disagreement; a missing checkpoint is left to `start_fingerprint`, which raises for it."""
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
    """Problems of the run's vocabulary, once it exists, with that of its checkpoint.

    Both are opened, so that no corpus is encoded with tokens that its training will refuse. A missing checkpoint is
    left to `start_fingerprint`, which raises for it.
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
    """The directory with `config.json` and weights. Raises DataError naming what is missing and what exists."""
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
    matches = sorted(path.parent for path in runs.glob(f"*/{RUN_RECORD}") if path.parent.name.startswith(name))
    if len(matches) > 1:
        raise DataError(f"{where}: may be any of {', '.join(path.name for path in matches)}; give more of its id")
    if not matches:
        raise DataError(f"{where}: no run of that id below {runs.resolve()}; start.root names the output root")
    return matches[0]


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
    """SHA-256 of every file of the checkpoint, and of the state that is resumed, by name; empty for random weights.

    Raises DataError where files are missing.
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
    """Problems with the fields, and both their values, in which `model` and the model in `directory` differ.

    What the group `model` says and what would change the number of parameters must agree. What it does not say, such as
    the epsilon of a norm, stays as in the checkpoint.
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
    sizes = {name: stored.get(STORED_NAMES[name]) for name in ("width", "layers", "heads", "ffn_width")}
    for name, expected in (sizes | optional_fields(stored)).items():
        if (value := getattr(model, name)) != expected:
            yield Problem(f"model.{name}", f"{value}, but {expected} in {file}; they must agree")
    length, trained = model.context_length, stored.get("max_position_embeddings")
    if not isinstance(trained, int) or (length > trained and not longer_context):
        message = f"{length} is longer than the {trained} of {file}, whose positions beyond were never trained"
        yield Problem("model.context_length", f"{message}; take {trained} or less, or say start.longer_context=true")
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
    """True if a run resumes a first training of its own."""
    return isinstance(config.start, ContinuedStart)


def first_config(config: RunConfig) -> RunConfig:
    """The configuration of a run's first training; `config` itself for a run without one.

    Raises ValueError where `start` does not give the first training's share of the budget.
    """
    if not isinstance(config.start, ContinuedStart):
        return config
    unit, amount = unit_of(config.budget), first_amount(config)
    if amount is None:
        raise ValueError(f"start.{unit} is not given")
    amounts: dict[str, Any] = {unit: amount}
    return replace(config, start=ScratchStart(kind="scratch"), budget=replace(config.budget, **amounts))


def first_amount(config: RunConfig) -> int | None:
    """Amount of a run's first training, in the budget's unit; None where `start` gives none."""
    return getattr(config.start, unit_of(config.budget)) if isinstance(config.start, ContinuedStart) else None


def begun(context: StageContext) -> StageContext:
    """The context with `start=continued` replaced by the checkpoint, among the inputs, of the run's first training."""
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
"""Fields of a fingerprint that decide, with `_STEP_FIELDS`, which contexts a step reads."""
_STEP_FIELDS = ("model.context_length", "training.global_batch")
"""Fields that decide how far in the sequence of contexts a step is; 0 where bytes of text decide them later."""


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
        """Files needed to resume, besides the checkpoint."""
        return self.directory / OPTIMIZER, self.directory / STATE, self.metrics


def resumed_state(start: CheckpointStart) -> ResumedState:
    """The state stored beside the checkpoint. Raises DataError where it is missing, with the remedy."""
    checkpoint = checkpoint_directory(start)
    artefact, name = checkpoint.parent, STEP_NAME.fullmatch(checkpoint.name)
    file = artefact / STATE_DIRECTORY / STATE
    if name is None or not file.is_file():
        raise DataError(
            f"resumed, but beside {checkpoint} there is no {STATE_DIRECTORY}/{STATE}: weights alone go on with "
            "start.optimizer=fresh, and the optimizer is in the artefact of a training that paribus finished, so name "
            "that by start.run or by its directory"
        )
    stored = read_object(file)
    step, fingerprint = stored.get("step"), stored.get("fingerprint")
    if not isinstance(step, int) or not isinstance(fingerprint, dict):
        raise DataError(f"{file}: no step and fingerprint in it, so it is not what a training wrote")
    if step != int(name[1]):
        raise DataError(
            f"resumed, but {artefact} keeps the optimizer of its last step, {step}, and not of step {int(name[1])}: "
            "leave start.step out, train the first run to that step alone, or take start.optimizer=fresh"
        )
    state = ResumedState(artefact, checkpoint, step, fingerprint)
    missing = [path for path in state.files if not path.is_file()]
    if missing:
        raise DataError(f"resumed, but {', '.join(map(str, missing))} is missing, which the training wrote")
    return state


def steps_before(config: RunConfig) -> int:
    """Steps of another training that count as the run's; 0 where it resumes none, or none that exists yet."""
    start = resuming(config)
    try:
        return resumed_state(start).step if start else 0
    except DataError:
        return 0


def resuming(config: RunConfig) -> CheckpointStart | None:
    """The start of a run that resumes the optimizer and the steps of another training; None for other runs."""
    start = config.start
    return start if isinstance(start, CheckpointStart) and start.optimizer == "resumed" else None


def check_resumed_state(config: RunConfig) -> Iterator[Problem]:
    """Problems with the fields, and both their values, in which a resumed run must agree with the first and does not.

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
    encoder = read_object(settings).get("encoder") if settings.is_file() else None
    if encoder is not None and encoder != config.encoder.kind:
        yield Problem(
            "encoder",
            f"{config.encoder.kind}, but {encoder} in the training that start.optimizer=resumed goes on with, whose "
            "contexts would be others; take the same, or start.optimizer=fresh",
        )
    values: dict[str, Any] = {
        f"{group}.{name}": value
        for group in ("training", "model", "packing")
        for name, value in identity(getattr(config, group)).items()
    }
    values["seeds.contexts"] = config.seed_of("contexts")
    counted = "steps are counted on, and it decides how much text they are"
    packing = [path for path in values if path.startswith("packing.") and path != "packing.attention"]
    reasons = {
        "training.kind": "the moments of one optimizer are none of another",
        "seeds.contexts": f"it decides which contexts were read, so take that; {EVERY_SEED}",
    } | dict.fromkeys((*_STEP_FIELDS, *packing), counted)
    for path, reason in reasons.items():
        value, stored = values.get(path), state.fingerprint.get(path)
        if value != stored and not (path in _STEP_FIELDS and value == 0):
            message = f"{value}, but {stored} in the training that start.optimizer=resumed goes on with; {reason}"
            yield Problem(path, message)


def resume_message(state: ResumedState) -> str:
    """Message of what a run takes from the first one."""
    where = f"step {state.step:,} of {state.artefact}"
    return f"training goes on from {where}, with its optimizer, in the text where it stopped"


def check_steps_left(config: RunConfig, state: ResumedState, steps: int) -> Iterator[Problem]:
    """Problem of a budget of `steps` that leaves nothing to train."""
    if steps <= state.step:
        counted = "with start.optimizer=resumed a budget is that of both trainings together, so take a larger one"
        yield Problem(amount_path(config.budget), f"it ends after step {steps}, and {state.step} are done; {counted}")


def check_checkpoints_left(config: RunConfig, first: int, steps: int) -> Iterator[Problem]:
    """Problem of checkpoints to be scored that are of step `first`, the last of the resumed training, or earlier."""
    number = config.evaluation.checkpoints_read
    scored = checkpoint_steps(config.training.checkpoints, steps, number)
    if first < steps and (early := [step for step in scored if step <= first]):
        later = f"take {len(scored) - len(early)} or less, or a larger training.checkpoints"
        yield Problem(
            config.evaluation.checkpoints_path,
            f"{number} are to be scored or averaged, and the first {len(early)} would stand where the training that is "
            f"gone on from was not over; {later}",
        )


def check_resumed_data(state: ResumedState, fingerprint: Mapping[str, Any]) -> Iterator[Problem]:
    """Problem of a run with `fingerprint` whose contexts are not those of the first training.

    The steps of both are counted in the contexts of one: with others, text would be reported that neither has read.
    """
    differing = [name for name in _CONTEXT_FIELDS if state.fingerprint.get(name) != fingerprint.get(name)]
    if differing:
        yield Problem(
            "start.optimizer",
            f"resumed, but the contexts of {state.artefact} are others ({', '.join(differing)}), and this run would "
            "count them as read; take the first run's corpus, tokenizer, encoder, order and seed, or "
            "start.optimizer=fresh",
        )


def metrics_before(state: ResumedState, path: Path) -> None:
    """Copy the metrics of the first training to `path`, unless that has as many bytes already."""
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

    No other seed belongs in the key of a training, lest one training pass for several.
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
