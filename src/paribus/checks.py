"""Refusals before anything runs: values that are right by themselves and cannot work together.

In come the frozen configurations of a command, each valid field by field. Out come problems: the path of a
field, what is wrong, and what would be right. All of them are found before the first is shown, so that a user
corrects a command once. Nothing is read but small files that the configuration names, and nothing heavy is
imported: `paribus plan` asks the same questions.

What a stage alone can know, as the number of tokens of a corpus, is refused by the stage, as early as it is known:
docs/reliability.md lists that. What needs the machine, as a missing GPU, is asked in `pipeline/devices.py`.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from paribus.config.arguments import Command
from paribus.config.compose import Composition, compose
from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.evaluation import ScrollsFinetuning, table_of
from paribus.config.groups.execution import URI_VARIABLE, PlanConfig
from paribus.config.groups.model import CheckpointStart, ContinuedStart, EncoderDecoderModel
from paribus.config.groups.ordering import (
    ConcatenatePacking,
    InContextOrdering,
    InContextReleasedOrdering,
    NearestOrdering,
    PairPacking,
    TransformersEmbedder,
    pads,
)
from paribus.config.groups.tokenization import (
    NATURAL,
    BytesTokenizer,
    DropoutEncoder,
    ExistingPretokenizer,
    ExistingTokenizer,
    LongestFirstEncoder,
    MergeRankEncoder,
    PredictiveEntropyPretokenizer,
    ScaffoldBPETokenizer,
    SpansPretokenizer,
    TrainableTokenizerConfig,
    UnigramTokenizer,
    ViterbiEncoder,
    WholeEncoder,
    WordPieceTokenizer,
    WordsTokenizer,
    natural_encoder,
    vocabulary_size,
)
from paribus.config.groups.training import (
    EqualFlopsBudget,
    EqualStepsBudget,
    EqualTokensBudget,
    TrainingConfig,
    amount_of,
    amount_path,
    too_few_checkpoints,
    unit_of,
)
from paribus.config.schema import RunConfig, check_byte_sizes, dataclasses_of, divided
from paribus.config.validate import build_run, did_you_mean, unknown
from paribus.errors import ConfigurationError, DataError, ParibusError, Problem
from paribus.evaluation.benchmarks import prompted, task_names
from paribus.evaluation.data_files import (
    HELDOUT_CLEAN,
    HELDOUT_CONCATENATED,
    SEGMENTATIONS,
    TRANSLATIONS,
    TranslationSet,
    concatenated_name,
)
from paribus.modeling.parameters import check_match, check_shape, training_flops
from paribus.tokenization.existing import algorithm, locate
from paribus.training.metrics import known_devices, peak_flops
from paribus.training.start import (
    check_checkpoints_left,
    check_steps_left,
    first_amount,
    first_config,
    resumed_state,
    resuming,
    steps_before,
)

if TYPE_CHECKING:
    from paribus.tokenization.tokenizer import Tokenizer
_OWN_ENCODER = ", or in place of both an arm, which has its own encoder: -m arm=bpe,unigram"
"""Advice for comparing tokenizers that have no encoder in common, where one was given with that of another."""
_BYTES_PER_TOKEN = 4
"""Bytes a token, a little fewer than English prose has with a vocabulary of some ten thousand tokens."""
WHOLE = ("bits_per_byte", "average")
"""Measures of whatever is scored, beside those of tasks, of groups of tasks and of sets of texts."""
ALIKE = 0.8
"""Ratio of `difflib` from which an unknown column is a slip of a known one; tasks that nobody scores may be columns."""


def compose_command(command: Command) -> Composition:
    """Compose and check every job of a command; ConfigurationError lists all problems of all jobs at once."""
    return compose(command, checked_run)


def checked_run(data: Mapping[str, Any]) -> RunConfig:
    """A `RunConfig` whose values can work together, from nested plain data; ConfigurationError otherwise."""
    data = with_natural_encoder(with_tasks_of_groups(data))
    tracking, uri = data.get("tracking"), os.environ.get(URI_VARIABLE)
    if uri and isinstance(tracking, Mapping) and tracking.get("uri", "") is None:
        data = {**data, "tracking": {**tracking, "uri": uri}}
    config = build_run(data)
    if problems := [*check_combinations(config)]:
        raise ConfigurationError(*problems)
    return config


def check_combinations(config: RunConfig) -> Iterator[Problem]:
    """Yield a problem for every impossible combination."""
    yield from _factors(config)
    yield from check_byte_sizes(config)
    yield from _tokenization(config)
    yield from _ordering(config)
    yield from _model(config)
    match config.start:
        case CheckpointStart():
            yield from _checkpoint(config.start)
        case ContinuedStart():
            yield from _continued(config, config.start)
    # A trained vocabulary may have fewer tokens than asked for; it is judged where the output root is known, which may
    # have it already.
    certain = isinstance(config.tokenizer, BytesTokenizer)
    yield from check_schedule(config, known_vocabulary(config) if certain else None)
    yield from _shares(config.training)
    yield from check_plan(config.plan)
    yield from _check_scored_pairs(config)
    yield from _evaluation(config)
    yield from _finetuning(config)


def _factors(config: RunConfig) -> Iterator[Problem]:
    """A declared factor must lead to a group or a field of it; one that only some choices of the group have will do."""
    for position, factor in enumerate(config.factors):
        classes: list[type[Any]] = [RunConfig]
        for part in factor.split("."):
            annotations = [get_type_hints(cls) for cls in classes]
            known = dict.fromkeys(name for types in annotations for name in types)
            if part not in known:
                names = f"; {did_you_mean(part, known)}known: {', '.join(known)}" if known else ""  # none below a field
                yield Problem(f"factors[{position}]", f"{factor!r} is no path of the configuration{names}")
                break
            classes = [cls for types in annotations if part in types for cls in dataclasses_of(types[part])]


def _tokenization(config: RunConfig) -> Iterator[Problem]:
    tokenizer = config.tokenizer
    yield from _encoder(config)
    existing = isinstance(config.pretokenizer, ExistingPretokenizer)
    if isinstance(tokenizer, ExistingTokenizer):
        if not existing:
            message = f"{config.pretokenizer.kind} beside tokenizer=existing, which brings its own; leave it out"
            yield Problem("pretokenizer.kind", message)
        return
    if existing:
        yield Problem("pretokenizer.kind", f"existing goes with tokenizer=existing only, not with {tokenizer.kind}")
    yield from _lost_text(tokenizer, config.pretokenizer.kind)
    if not isinstance(tokenizer, BytesTokenizer):
        base = len(tokenizer.special_tokens) + (256 if tokenizer.unit == "byte" else 1)
        if tokenizer.vocab_size < base:
            message = f"{tokenizer.vocab_size} is below the alphabet and special tokens ({base}); use {base} or more"
            yield Problem("tokenizer.vocab_size", message)
    if len(set(tokenizer.special_tokens)) < len(tokenizer.special_tokens) or "" in tokenizer.special_tokens:
        yield Problem("tokenizer.special_tokens", "must be distinct and not empty")
    if isinstance(config.pretokenizer, SpansPretokenizer) and config.pretokenizer.max_length < 2:
        yield Problem("pretokenizer.max_length", "a span has at least 2 characters")


def _encoder(config: RunConfig) -> Iterator[Problem]:
    tokenizer, encoder = config.tokenizer, config.encoder
    merges, unfit = isinstance(encoder, MergeRankEncoder | DropoutEncoder), None
    if isinstance(tokenizer, BytesTokenizer) and not isinstance(encoder, MergeRankEncoder):
        unfit = "has nothing to choose with tokenizer=bytes; use encoder=merge_rank"
    elif isinstance(tokenizer, UnigramTokenizer) and merges:
        alternatives = "viterbi, longest_first, left_to_right or fewest"
        unfit = f"needs merges, and tokenizer=unigram has none; use {alternatives}{_OWN_ENCODER}"
    elif isinstance(tokenizer, WordsTokenizer) and merges:
        unfit = f"needs merges, and tokenizer=words has none; use encoder=whole{_OWN_ENCODER}"
    elif isinstance(tokenizer, WordsTokenizer) and _one_unknown(tokenizer) and not isinstance(encoder, WholeEncoder):
        unfit = "needs units, and tokenizer=words with unknown=token has none; use encoder=whole"
    elif isinstance(encoder, ViterbiEncoder) and not isinstance(tokenizer, UnigramTokenizer | ExistingTokenizer):
        unfit = f"needs the scores of tokenizer=unigram; with {tokenizer.kind} use encoder=fewest{_OWN_ENCODER}"
    if unfit:
        yield Problem("encoder.kind", f"{encoder.kind} {unfit}")
    cut = isinstance(config.pretokenizer, SpansPretokenizer | PredictiveEntropyPretokenizer)
    if isinstance(encoder, DropoutEncoder) and cut:
        patterns = "gpt2, gpt2_digits, gpt4, whitespace, punctuation, none"
        yield Problem("encoder.kind", f"dropout needs a pre-tokenizer by pattern ({patterns})")
    if isinstance(encoder, DropoutEncoder) and encoder.draws > 1 and not isinstance(config.packing, PairPacking):
        yield Problem(
            "encoder.draws",
            f"{encoder.draws} draws take turns by epochs, which packing=pair has; packing={config.packing.kind} cuts "
            "contexts elsewhere in every draw: use encoder=dropout, which draws once, or pairs and packing=pair",
        )
    expanded = isinstance(encoder, LongestFirstEncoder) and encoder.candidates == "expanded"
    if expanded and not isinstance(tokenizer, ScaffoldBPETokenizer | ExistingTokenizer):
        message = "expanded needs scaffolds: use tokenizer=scaffold_bpe, or candidates=normal"
        yield Problem("encoder.candidates", message)


def _one_unknown(tokenizer: WordPieceTokenizer | WordsTokenizer) -> bool:
    """True if a word outside the vocabulary is one unknown token, since there are no units to spell it in."""
    return tokenizer.unit == "character" and tokenizer.unknown == "token"


def _lost_text(tokenizer: TrainableTokenizerConfig, pretokenizer: str) -> Iterator[Problem]:
    if isinstance(tokenizer, BytesTokenizer):
        if pretokenizer == "stripped":
            message = "stripped loses whitespace, which tokenizer=bytes keeps; use pretokenizer=none"
            yield Problem("pretokenizer.kind", message)
        return
    if pretokenizer == "stripped" and tokenizer.lossless:
        message = "stripped loses whitespace and tokenizer.lossless=true; use whitespace, which keeps it, or say"
        yield Problem("pretokenizer.kind", f"{message} tokenizer.lossless=false")
    if tokenizer.lossless and tokenizer.unit == "character" and tokenizer.unknown == "token":
        message = "token loses characters and tokenizer.lossless=true; use byte_fallback, or tokenizer.lossless=false"
        yield Problem("tokenizer.unknown", message)


def _ordering(config: RunConfig) -> Iterator[Problem]:
    ordering, retrieved = config.ordering, config.neighbours.retrieved
    match ordering:
        case InContextOrdering() | InContextReleasedOrdering() | NearestOrdering() if ordering.neighbours > retrieved:
            yield Problem("ordering.neighbours", f"{ordering.neighbours} exceeds neighbours.retrieved={retrieved}")
    if isinstance(ordering, NearestOrdering) and not isinstance(config.packing, ConcatenatePacking):
        message = f"{config.packing.kind} does not begin a context at each document, as ordering=nn wants"
        yield Problem("packing.kind", f"{message}; use packing=concatenate")
    neighbours = config.neighbours
    if neighbours.index in ("flat", "ivf") and neighbours.code_size is not None:
        yield Problem("neighbours.code_size", f"index={neighbours.index} keeps whole vectors; use index=ivf_pq")
    if neighbours.device == "gpu" and neighbours.index != "flat":
        message = f"gpu compares all vectors, index={neighbours.index} does not"
        yield Problem("neighbours.device", f"{message}; use neighbours.index=flat, or device=auto")
    if neighbours.index == "flat" and (neighbours.lists or neighbours.probes):
        yield Problem("neighbours.index", "flat searches everything and has no lists or probes; use ivf or ivf_pq")
    if neighbours.lists and neighbours.probes and neighbours.probes > neighbours.lists:
        yield Problem("neighbours.probes", f"{neighbours.probes} exceeds neighbours.lists={neighbours.lists}")
    if isinstance(config.embedder, TransformersEmbedder) and config.embedder.path == "":
        yield Problem("embedder.path", "must name a directory or a model of the hub")


def _model(config: RunConfig) -> Iterator[Problem]:
    """Check the shape; an encoder-decoder, a corpus of pairs and rows of pairs go together or not at all."""
    model, kind = config.model, config.model.kind
    yield from check_shape(model)
    if not isinstance(config.tokenizer, ExistingTokenizer):
        yield from check_match(model, vocabulary_size(config.tokenizer))
    translates = isinstance(model, EncoderDecoderModel)
    if translates and not isinstance(config.corpus, ParallelCorpus):
        message = f"{config.corpus.kind} has documents, and model.kind=encoder_decoder trains on pairs of source and"
        yield Problem("corpus.kind", f"{message} target; use corpus=parallel, or a model that is llama or gpt_neox")
    if isinstance(config.corpus, ParallelCorpus) and not translates:
        message = f"{kind} trains on documents, and corpus=parallel has pairs; use model=wmt_small"
        yield Problem("model.kind", message)
    if isinstance(config.packing, PairPacking) != translates:
        right = "pair" if translates else "concatenate, best_fit or one_document"
        yield Problem("packing.kind", f"{config.packing.kind} does not go with model.kind={kind}; use {right}")


def known_vocabulary(config: RunConfig) -> int | None:
    """Number of tokens that is asked for, None where only the files of a tokenizer say it."""
    return None if isinstance(config.tokenizer, ExistingTokenizer) else vocabulary_size(config.tokenizer)


def _shares(training: TrainingConfig) -> Iterator[Problem]:
    processes = max(1, training.processes) * max(1, training.nodes)
    path, contexts = divided(training)
    share, rest = divmod(contexts, processes)
    given = f"training.processes={training.processes} x training.nodes={training.nodes}"
    if rest:
        yield Problem(path, f"{contexts} cannot be shared evenly by {given}")
    elif training.batch_bytes is None and share and training.micro_batch and share % min(training.micro_batch, share):
        size = f"training.global_batch={training.global_batch}" + (f" / {processes} processes" if processes > 1 else "")
        yield Problem("training.micro_batch", f"{training.micro_batch} does not divide {size}")
    shards = training.shard_processes
    if shards and training.parallel != "fsdp":
        message = f"{shards}, but training.parallel={training.parallel} divides no weights"
        yield Problem("training.shard_processes", f"{message}; use training.parallel=fsdp, or 0")
    elif shards and training.processes and training.nodes and processes % shards:
        message = f"{shards} make no groups of {given}; use a divisor of {processes}, or 0 for all of them"
        yield Problem("training.shard_processes", message)
    if training.deterministic and training.compile == "always":
        message = "always compiles layers, which training.deterministic forbids; use auto or never"
        yield Problem("training.compile", message)
    if training.deterministic and not training.micro_batch:
        message = "0 takes what a trial finds, which rounds otherwise at times; deterministic needs one"
        yield Problem("training.micro_batch", message)
    if processes > 1 and ":" in training.device:
        message = f"{training.device} is one device, but {processes} processes take one each; use cuda or auto"
        yield Problem("training.device", message)


@dataclass(frozen=True)
class _Schedule:
    """A budget whose steps are known, in its own unit."""

    path: str
    value: int
    of_step: int
    step: str
    """Work of a step, in words."""

    @property
    def steps(self) -> int:
        return -(-self.value // self.of_step)


def check_schedule(config: RunConfig, vocabulary: int | None) -> Iterator[Problem]:
    """Yield the problems of a budget with too few steps: less than one, none after the warm-up, or none to continue.

    A budget in FLOPs needs the number of tokens `vocabulary` for that; None where only files say it.
    """
    yield from _too_short(config, vocabulary)
    schedule, start = _schedule(config, vocabulary), resuming(config)
    # A budget that ends where the training that is gone on from ended, or before.
    if schedule is not None and start is not None and 0 < schedule.steps <= steps_before(config):
        yield from check_steps_left(config, resumed_state(start), schedule.steps)
    if first := _first(config):
        for path, message in _too_short(first, vocabulary):
            yield Problem(path.replace("budget.", "start."), f"of the training that is gone on from: {message}")
        first_schedule = _schedule(first, vocabulary)
        if first_schedule is not None and schedule is not None and first_schedule.steps == schedule.steps:
            message = f"{first_schedule.value} takes all {schedule.steps} steps of {schedule.path}"
            yield Problem(first_schedule.path.replace("budget.", "start."), message)


def _too_short(config: RunConfig, vocabulary: int | None) -> Iterator[Problem]:
    schedule = _schedule(config, vocabulary)
    if schedule is not None and schedule.value < schedule.of_step:
        yield Problem(schedule.path, f"{schedule.value} is less than one step ({schedule.step})")
    if schedule is not None and (unreached := config.training.unreached_warmup(schedule.steps, schedule.path)):
        yield Problem("training.warmup_steps", unreached)


def check_scored_checkpoints(config: RunConfig, vocabulary: int | None) -> Iterator[Problem]:
    """Yield a problem for fewer checkpoints than are to be scored, as far as the steps are known."""
    schedule = _schedule(config, vocabulary)
    few = schedule and too_few_checkpoints(config.training, schedule.steps, config.evaluation.checkpoints_read)
    if few:
        yield Problem(config.evaluation.checkpoints_path, few)
    elif first := _first(config):
        first_schedule = _schedule(first, vocabulary)
        # Where the steps are not known yet, their ratio decides; each checkpoint must stand at a step of its own.
        share, checkpoints = Fraction(amount_of(first.budget), amount_of(config.budget)), config.training.checkpoints
        shares = (share.numerator * checkpoints, share.denominator * checkpoints)
        steps = (first_schedule.steps, schedule.steps) if first_schedule and schedule else shares
        yield from check_checkpoints_left(config, *steps)
    elif schedule and (before := steps_before(config)):
        yield from check_checkpoints_left(config, before, schedule.steps)


def _first(config: RunConfig) -> RunConfig | None:
    """The configuration of a run's own first training; None where it has none, or none that is less than the whole."""
    amount = first_amount(config)
    return first_config(config) if amount is not None and amount < amount_of(config.budget) else None


def _schedule(config: RunConfig, vocabulary: int | None) -> _Schedule | None:
    """None where documents decide how many steps there are, as by bytes or pairs, and without a known vocabulary."""
    budget, tokens = config.budget, config.training.global_batch * config.model.context_length
    step = f"training.global_batch x model.context_length = {tokens} tokens"
    match budget:
        case EqualStepsBudget():
            return _Schedule("budget.steps", budget.steps, 1, step)
        case _ if isinstance(config.packing, PairPacking) or not tokens:
            return None
        case EqualTokensBudget() if not pads(config.packing):
            return _Schedule("budget.tokens", budget.tokens, tokens, step)
        case EqualFlopsBudget() if vocabulary is not None and not list(check_match(config.model, vocabulary)):
            flops = training_flops(config.model, vocabulary, tokens)
            return _Schedule("budget.flops", budget.flops, flops, f"{step}: {flops:.3g} FLOPs")
        case _:
            return None


def _check_scored_pairs(config: RunConfig) -> Iterator[Problem]:
    evaluation, translates = config.evaluation, isinstance(config.model, EncoderDecoderModel)
    sets = [TRANSLATIONS[name] for name in evaluation.tasks if name in TRANSLATIONS]
    if not translates:
        for chosen in sets:
            message = f"{chosen.name} is translated by an encoder_decoder, and model.kind is {config.model.kind}"
            yield Problem("evaluation.tasks", f"{message}; use model=wmt_small with corpus=parallel, or take it out")
        return
    if continued := prompted(evaluation.tasks):
        message = f"{', '.join(continued)} scores what follows a text, which encoder_decoder cannot"
        yield Problem("evaluation.tasks", f"{message}; use evaluation=heldout, which has none")
    if evaluation.precision != "fp32":
        yield Problem("evaluation.precision", f"{evaluation.precision}, but an encoder_decoder is scored in fp32 only")
    if evaluation.texts:
        message = f"{', '.join(evaluation.texts)} has texts without a source, which encoder_decoder cannot score"
        yield Problem("evaluation.texts", f"{message}; leave it empty")
    if isinstance(config.corpus, ParallelCorpus):
        yield from _directions(config.corpus, sets)


def _directions(corpus: ParallelCorpus, sets: list[TranslationSet]) -> Iterator[Problem]:
    """Yield a problem for each set whose direction, which its name says, is not that of the corpus."""
    source, target = (language or "an unnamed language" for language in corpus.languages())
    for chosen in sets:
        if (source, target) == (chosen.source, chosen.target):
            continue
        remedy = f"say corpus.source_language={chosen.source} corpus.target_language={chosen.target} if that is so"
        if (source, target) == (chosen.target, chosen.source):
            remedy = f"take {next(name for name, other in TRANSLATIONS.items() if chosen.reverses(other))}"
        yield Problem(
            "evaluation.tasks",
            f"{chosen.name} translates from {chosen.source} to {chosen.target}, the corpus from {source} to {target} "
            f"(corpus.source_language, or the files' suffix, or corpus.source_field); {remedy}",
        )


def _evaluation(config: RunConfig) -> Iterator[Problem]:
    evaluation = config.evaluation
    tokenizer, segmented = config.tokenizer, [name for name in evaluation.tasks if name in SEGMENTATIONS]
    if segmented and isinstance(tokenizer, WordPieceTokenizer | WordsTokenizer) and _one_unknown(tokenizer):
        looked = f"{', '.join(segmented)} looks for each token in the text"
        message = f"{looked}, and {tokenizer.kind} makes one of an unknown word"
        yield Problem("evaluation.tasks", f"{message}; use tokenizer.unknown=byte_fallback")
    read, last = evaluation.checkpoints_read, evaluation.last_checkpoints
    message = f"{last} exceeds"
    if evaluation.average_checkpoints > 1:
        with_last = f"with evaluation.last_checkpoints={last}"
        message = f"{evaluation.average_checkpoints}, {with_last}, takes {read} checkpoints, more than"
    for name in ("checkpoints", "keep_checkpoints"):
        if read > (most := getattr(config.training, name)):
            yield Problem(evaluation.checkpoints_path, f"{message} training.{name}={most}")
    if len(set(evaluation.shots)) < len(evaluation.shots):
        yield Problem("evaluation.shots", "lists a number twice")
    for task, shots in (evaluation.shots_of or {}).items():
        if len(set(shots)) < len(shots):
            yield Problem(f"evaluation.shots_of.{task}", "lists a number twice")


def _finetuning(config: RunConfig) -> Iterator[Problem]:
    finetuning = config.finetuning
    if not isinstance(finetuning, ScrollsFinetuning):
        return
    if isinstance(config.model, EncoderDecoderModel):
        message = "scrolls fine-tunes language models, which model.kind=encoder_decoder is not"
        yield Problem("finetuning.kind", f"{message}; use finetuning=none, or a model that is llama or gpt_neox")
        return
    size = 1 if isinstance(config.tokenizer, BytesTokenizer) else _BYTES_PER_TOKEN
    model, context = config.model, f"model.context_length={config.model.context_length}"
    half = model.context_length // 2 * size
    if model.context_bytes is not None:
        half, context = model.context_bytes // 2, f"model.context_bytes={model.context_bytes}"
    if finetuning.answer_characters > half:
        message = f"{finetuning.answer_characters} characters ({size} to a token) take more than half of"
        yield Problem("finetuning.answer_characters", f"{message} {context}; use {half} or less, or a longer context")


def check_primary(configs: Sequence[RunConfig]) -> Iterator[Problem]:
    """Yield a problem for each primary measure that no run of a sweep has, or that the table does not show."""
    table = table_of(configs[0].experiment)
    # What runs are scored on; and what a table shows without that, as those of papers do.
    known = set(task_names())
    tasks = [*scored_tasks(configs), *(task for name in table.columns if (task := task_of(name)) in known)]
    # Bits per byte, and the mean where it is a column or of several tasks.
    whole = WHOLE if len(set(tasks)) > 1 or "average" in table.columns else WHOLE[:1]
    groups = [name for name, members in (table.groups or {}).items() if set(members) & set(tasks)]
    measures = list(dict.fromkeys([*whole, *groups, *tasks, *text_measures(configs)]))
    shown = {task_of(name) for name in table.columns} | set(table.columns)
    for position, name in enumerate(table.primary):
        path = f"experiment.table.primary[{position}]"
        if name not in measures and task_of(name) not in tasks:
            yield Problem(path, unknown(name, measures))
        elif not _has_shots(name, configs):
            message = "no run is scored with so many examples; evaluation.shots says with how many"
            yield Problem(path, f"{name!r}: {message}")
        elif shown and name not in shown and task_of(name) not in shown:
            message = "is no column of the table; add it to experiment.table.columns, or leave it out"
            yield Problem(path, f"{name!r} {message}")


def check_columns(configs: Sequence[RunConfig], measures: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each column or task that resembles a known name and that lm-eval does not have either.

    `measures` are known names that belong to no task.
    """
    from paribus.evaluation.lm_eval_tasks import is_borrowed

    table, include_path = table_of(configs[0].experiment), configs[0].evaluation.include_path
    groups = table.groups or {}
    known = [*scored_tasks(configs), *task_names(), *groups, *measures, *text_measures(configs)]
    lists = {"columns": table.columns} | {f"groups.{group}": tasks for group, tasks in groups.items()}
    for path, place, name in [(path, place, name) for path, names in lists.items() for place, name in enumerate(names)]:
        task = task_of(name)
        alike = difflib.get_close_matches(task, known, n=1, cutoff=ALIKE)
        if alike and not {name, task} & set(known) and not is_borrowed(task, include_path):
            message = f"{name!r} is unknown; {did_you_mean(task, known).strip()}"
            yield Problem(f"experiment.table.{path}[{place}]", message)


def _has_shots(name: str, configs: Sequence[RunConfig]) -> bool:
    """True if some run has the number of shots that a measure such as `boolq/5_shot` names, if it names one."""
    number = re.fullmatch(r"[^/]+/(\d+)_shot", name)
    if number is None:
        return True
    task = task_of(name)
    scored = [config.evaluation for config in configs if task in config.evaluation.tasks]
    return not scored or any(int(number[1]) in evaluation.task_shots(task) for evaluation in scored)


def task_of(name: str) -> str:
    """The task of a measure such as `boolq/5_shot` or `squad:f1`."""
    return name.partition("/")[0].partition(":")[0]


def scored_tasks(configs: Sequence[RunConfig]) -> list[str]:
    """Tasks that runs are scored on, once for each run that is."""
    tuned = [config.finetuning for config in configs if isinstance(config.finetuning, ScrollsFinetuning)]
    scored = [task for config in configs for task in config.evaluation.tasks]
    return [*scored, *(task for finetuning in tuned for task in finetuning.tasks)]


def text_measures(configs: Sequence[RunConfig]) -> list[str]:
    """Measures of sets of texts: the name of each set, and its perplexity."""
    named = [name for config in configs for name in config.evaluation.texts]
    streams = [config.evaluation for config in configs if config.evaluation.concatenated]
    named += [concatenated_name(name) for evaluation in streams for name in evaluation.texts]
    sets = [*named, HELDOUT_CLEAN, *([HELDOUT_CONCATENATED] if streams else [])]
    return [*sets, *(f"{name}:perplexity" for name in sets)]


def _checkpoint(start: CheckpointStart) -> Iterator[Problem]:
    if (start.path is None) == (start.run is None):
        given = "neither is given" if start.path is None else f"start.run={start.run} is given too"
        message = "give start.path (a directory) or start.run (the id of a run), one of the two"
        yield Problem("start.path", f"{message}: {given}")
    if start.optimizer == "resumed" and start.vocabulary == "added":
        message = "added, but start.optimizer=resumed goes on with moments, and added tokens have none"
        yield Problem("start.vocabulary", f"{message}; take the same vocabulary, or start.optimizer=fresh")


def _continued(config: RunConfig, start: ContinuedStart) -> Iterator[Problem]:
    path, unit = amount_path(config.budget), unit_of(config.budget)
    first, whole = first_amount(config), amount_of(config.budget)
    for name in (field.name for field in fields(start) if field.name not in ("kind", unit)):
        if getattr(start, name) is not None:
            yield Problem(f"start.{name}", f"given, but budget={config.budget.kind} counts {unit}; give start.{unit}")
    if isinstance(config.model, EncoderDecoderModel):
        message = "continued goes on with a decoder (model.kind llama or gpt_neox), not an encoder-decoder"
        yield Problem("start.kind", message)
    if first is None:
        yield Problem(f"start.{unit}", f"not given: how much of {path}={whole} the training has that is gone on from")
    elif first >= whole:
        yield Problem(f"start.{unit}", f"{first} is not below {path}={whole}, which is that of both trainings together")


def check_plan(plan: PlanConfig) -> Iterator[Problem]:
    """Yield the problems of `plan`: a stated speed needs a peak, and a probe measures this machine."""
    if plan.device is not None and plan.peak_tflops is None and peak_flops(plan.device) is None:
        known = known_devices()
        hint = did_you_mean(plan.device.lower(), known)
        unknown_peak = f"the peak of {plan.device!r} is unknown; {hint}known: {', '.join(known)}"
        yield Problem("plan.device", f"{unknown_peak}; or state it with plan.peak_tflops")
    if plan.throughput == "stated" and plan.device is None and plan.peak_tflops is None:
        yield Problem("plan.throughput", "stated needs plan.device, such as h800, or plan.peak_tflops")
    if plan.throughput == "probe" and (plan.device or plan.peak_tflops):
        other = "plan.device" if plan.device else "plan.peak_tflops"
        message = f"probe measures this machine, which {other} is not about; leave that out, or take auto"
        yield Problem("plan.throughput", message)


def with_natural_encoder(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration as plain data, in which the encoder `natural` becomes the one that its tokenizer is made for."""
    tokenizer = data.get("tokenizer")
    if data.get("encoder") != NATURAL or not isinstance(tokenizer, Mapping):
        return data
    made_by = str(tokenizer.get("kind"))
    if made_by == "existing":
        with suppress(ParibusError):  # whoever opens it says why
            made_by = algorithm(Path(str(tokenizer.get("path"))))
    return {**data, "encoder": {"kind": natural_encoder(made_by)}}


def check_tokenizer(config: RunConfig) -> list[Problem]:
    """Problems of an existing tokenizer with the rest of a run; its fingerprint reports one that is missing."""
    tokenizer, problems = _open_existing(config)
    if tokenizer is None:
        return problems
    return [
        *check_match(config.model, tokenizer.vocab_size),
        *check_schedule(config, tokenizer.vocab_size),
        *check_scored_checkpoints(config, tokenizer.vocab_size),
    ]


def check_encoding(config: RunConfig) -> list[Problem]:
    """The problems of `check_tokenizer` that do not depend on what is trained with it."""
    return _open_existing(config)[1]


def _open_existing(config: RunConfig) -> tuple["Tokenizer | None", list[Problem]]:
    """The existing tokenizer with the run's encoder, or the problems with it; neither where there is no file."""
    if not isinstance(config.tokenizer, ExistingTokenizer):
        return None, []
    path = Path(config.tokenizer.path)
    try:
        locate(path)
    except DataError:
        return None, []
    from paribus.tokenization.build import with_encoder
    from paribus.tokenization.existing import open_existing
    from paribus.tokenization.settings import check_lossless

    field = "tokenizer.path"
    try:
        tokenizer = open_existing(path)
        _ = tokenizer.eos_id
        if config.tokenizer.lossless:
            field = "tokenizer.lossless"
            check_lossless(tokenizer.settings)
        field = "encoder.kind"
        return with_encoder(tokenizer, config.encoder), []
    except ParibusError as error:
        return None, [Problem(field, str(error))]


def with_tasks_of_groups(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration as plain data, in which tasks replace their group: in `evaluation.tasks`, in
    `evaluation.shots_of` and in table groups.

    Malformed names or files stay as they are: whoever looks for the tasks says why.
    """
    evaluation, experiment = data.get("evaluation"), data.get("experiment")
    if not isinstance(evaluation, Mapping):
        return data
    path = evaluation.get("include_path")
    tasks, shots = _replace_groups(evaluation.get("tasks"), path), _values_by_task(evaluation.get("shots_of"), path)
    changed = {**data, "evaluation": {**evaluation, "tasks": tasks, "shots_of": shots}}
    table = experiment.get("table") if isinstance(experiment, Mapping) else None
    groups = table.get("groups") if isinstance(table, Mapping) else None
    if isinstance(experiment, Mapping) and isinstance(table, Mapping) and isinstance(groups, Mapping):
        whole = {name: _replace_groups(tasks, path) for name, tasks in groups.items()}
        changed["experiment"] = {**experiment, "table": {**table, "groups": whole}}
    return changed


def _replace_groups(tasks: Any, include_path: Any) -> Any:
    """Replace groups by their tasks, those named elsewhere left out; a name given twice stays, to be refused later."""
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        return tasks
    names: list[str] = []
    for task in tasks:
        members = _members(task, include_path)
        names += members if members == [task] else [member for member in members if member not in (*tasks, *names)]
    return names


def _values_by_task(values: Any, include_path: Any) -> Any:
    """Values by task; a task that is named itself has its own value and not that of its group."""
    if not isinstance(values, Mapping):
        return values
    given = {str(name): value for name, value in values.items()}
    return {member: value for name, value in given.items() for member in _members(name, include_path)} | {
        name: value for name, value in given.items() if _members(name, include_path) == [name]
    }


def _members(task: str, include_path: Any) -> list[str]:
    from paribus.evaluation.benchmarks import is_ours

    if is_ours(task):
        return [task]
    from paribus.evaluation.lm_eval_tasks import task_members

    try:
        return task_members(include_path if isinstance(include_path, str) else None, task) or [task]
    except ParibusError:
        return [task]
