"""The runs of a command with the graphs of their artefacts, checked as far as that is possible before anything runs."""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from paribus.checks import (
    check_columns,
    check_primary,
    check_schedule,
    check_scored_checkpoints,
    check_tokenizer,
    known_vocabulary,
)
from paribus.config.compose import Composition, Job
from paribus.config.groups.evaluation import table_of
from paribus.config.groups.execution import SweepConfig
from paribus.config.groups.model import CheckpointStart
from paribus.config.groups.tokenization import ExistingTokenizer
from paribus.config.groups.training import too_few_checkpoints
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.engine.local import check_engine
from paribus.errors import ConfigurationError, ParibusError, Problem
from paribus.evaluation.preflight import check_evaluation, check_task_names, fetch_missing, missing_examples
from paribus.evaluation.scrolls import check_scrolls, check_scrolls_names
from paribus.ordering.embedding_files import check_ordering
from paribus.pipeline.devices import HERE, Devices
from paribus.pipeline.graph import Node, build_graph, needed_for, to_make
from paribus.pipeline.prepared import PreparedRun, run_name
from paribus.pipeline.recorder import is_done
from paribus.pipeline.root import OutputRoot
from paribus.reporting.measures import MEASURES, check_factors
from paribus.reporting.paper import check_paper
from paribus.tracking.destination import check_destination
from paribus.training.start import check_start_state, check_tokens

RecordedFiles = Callable[[Job], Mapping[str, Any]]
"""Fingerprints by group of the files that a job is prepared with in place of those of now; other groups are read."""
VocabularyProblems = dict[tuple[Path, CheckpointStart], list[Problem]]
"""Problems by vocabulary and start checkpoint, of which the runs of a sweep share most."""
SLURM = "submitit_slurm"
COMMANDS_OF_SLURM = ("srun", "sbatch")
"""Commands by which submitit detects a cluster, and hands it jobs."""


def prepare_runs(
    composition: Composition,
    *,
    tolerate_missing: bool = False,
    judge_made: bool = True,
    recorded_files: RecordedFiles = lambda job: {},
) -> list[PreparedRun]:
    """Graphs of all runs; one error with every problem of their files, tasks, checkpoints and tables.

    With `tolerate_missing`, for commands that only read, files outside the configuration and devices may be absent, and
    nothing is remembered. Where jobs run elsewhere, they judge devices themselves. Without `judge_made` no run is
    refused for what it has made. Runs that are on record have the files that they had `before`.
    """
    judged = composition.launcher in HERE and not tolerate_missing
    devices = Devices()
    experiment = composition.jobs[0].config.experiment
    paper = experiment.paper if experiment else None
    problems = check_paper(paper) if paper else []
    configs = [job.config for job in composition.jobs]
    table = table_of(experiment)
    if any(table_of(config.experiment) != table for config in configs):
        several = "runs of one command are in one table, and these name several"
        problems.append(Problem("experiment.table", f"{several}; give each experiment a command of its own"))
    # One run, or one arm of a sweep that a name stands for, has no factors: its table is that of the whole sweep.
    problems += check_factors(composition.factors, table) if composition.factors else []
    problems += [*check_primary(configs), *check_columns(configs, MEASURES)]
    runs: list[PreparedRun] = []
    mismatches: list[list[Problem]] = []
    checked: VocabularyProblems = {}
    with ExitStack() as stack:
        caches = {cache: cache for cache in (OutputRoot.of(job.config).cache for job in composition.jobs)}
        if tolerate_missing:
            caches = {cache: stack.enter_context(overlay(cache)) for cache in caches}
        for job in composition.jobs:
            files = recorded_files(job)
            unfit = _unfit(job.config, tolerate_missing=tolerate_missing, made=bool(files))
            problems += unfit
            vocabulary = known_vocabulary(job.config)
            try:
                cache = caches[OutputRoot.of(job.config).cache]
                nodes = build_graph(job.config, cache, tolerate_missing=tolerate_missing, files_before=files)
                runs.append(PreparedRun(job, nodes, composition.factors, composition.launcher))
                vocabulary = made_vocabulary(nodes["vocabulary"], OutputRoot.of(job.config)) or vocabulary
                mismatch = [] if unfit or not judge_made else vocabulary_problems(runs[-1], checked)
                mismatches.append(mismatch)
                problems += mismatch if isinstance(job.config.tokenizer, ExistingTokenizer) else []
                problems += _check_stages(runs[-1], epochs=not tolerate_missing)
                problems += check_ordering(job.config, missing_stages(runs[-1]))
                problems += devices.check(job.config, runs[-1].required) if judged else []
            except ParibusError as error:
                problems += () if unfit else error.problems
            problems += check_schedule(job.config, vocabulary)
            problems += check_scored_checkpoints(job.config, vocabulary)
    problems += [] if tolerate_missing else check_launcher(runs)
    # A vocabulary that was made and does not fit fails its own run; all are refused only where none fits.
    problems += [problem for each in mismatches for problem in each] if all(mismatches) else []
    if problems:
        raise ConfigurationError(*dict.fromkeys(problems))
    if not tolerate_missing and (repeated := same_run_twice(runs)):
        raise repeated
    return runs


def _unfit(config: RunConfig, *, tolerate_missing: bool, made: bool) -> list[Problem]:
    """Problems of what a run's fields name; if it was `made`, not of its start checkpoint and existing tokenizer."""
    problems = [] if made else [*check_start_state(config), *check_tokenizer(config)]
    problems += check_destination(config.tracking)
    problems += [] if tolerate_missing else check_engine(config.engine)
    judge = check_task_names if tolerate_missing else check_evaluation
    judge_finetuning = check_scrolls_names if tolerate_missing else check_scrolls
    return [*problems, *judge(config.evaluation), *judge_finetuning(config.finetuning)]


def same_run_twice(runs: Sequence[PreparedRun]) -> ConfigurationError | None:
    """An error where two jobs are the same run, which a table would show as two rows or seeds; else None."""
    common = set.intersection(*(set(run.job.overrides) for run in runs))
    jobs: dict[str, str] = {}
    for run in runs:
        own = " ".join(text for text in run.job.overrides if text not in common)
        if run.run_id in jobs:
            return ConfigurationError(f"{jobs[run.run_id]} and {own} make the same run; leave one of them out")
        jobs[run.run_id] = own
    return None


def made_vocabulary(vocabulary: Node, root: OutputRoot) -> int | None:
    """Number of tokens of the vocabulary in the output root, maybe fewer than were asked for; None without one."""
    made = root.store.find(vocabulary.name, vocabulary.key)
    size = made.record()["result"].get("vocab_size") if made else None
    return None if size is None else int(size)


def vocabulary_problems(run: PreparedRun, checked: VocabularyProblems) -> list[Problem]:
    """Problems of a vocabulary that is there with the checkpoint that a run starts from, where it is still to train.

    Each vocabulary is opened once: `checked` has the problems of those of other runs, and gets this one's.
    """
    config, node = run.job.config, run.nodes["vocabulary"]
    if not isinstance(config.start, CheckpointStart) or "training" not in missing_stages(run):
        return []
    made = OutputRoot.of(config).store.find(*node.place)
    if made is not None:
        path = made.path
    elif isinstance(config.tokenizer, ExistingTokenizer):
        path = Path(config.tokenizer.path)
    else:
        return []
    key = path, config.start
    if key not in checked:
        checked[key] = [*check_tokens(config, path)]
    return checked[key]


def _check_stages(run: PreparedRun, *, epochs: bool) -> Iterator[Problem]:
    """Yield what is wrong with `until`, and with a finished training: too many `epochs`, too few checkpoints."""
    config, node = run.job.config, run.nodes["training"]
    if config.until is not None and config.until not in run.nodes:
        yield Problem("until", f"{run_name(config)} has no stage {config.until}, only {', '.join(run.nodes)}")
    training = OutputRoot.of(config).store.find(*node.place)
    if training is None:
        return
    result, most = training.record()["result"], config.budget.max_epochs
    if epochs and most is not None and result["epochs"] > most:
        message = f"{most:g} refuses this training, which is finished and took {result['epochs']:.4g} epochs"
        yield Problem("budget.max_epochs", f"{message}; take a smaller budget")
    if few := too_few_checkpoints(config.training, int(result["steps"]), config.evaluation.checkpoints_read):
        yield Problem(config.evaluation.checkpoints_path, few)


def missing_stages(run: PreparedRun) -> set[str]:
    """The stages of a run that its command is still to make."""
    return to_make(run.required, OutputRoot.of(run.job.config).store)


def describe_sweep(composition: Composition, runs: Sequence[PreparedRun]) -> SweepConfig:
    """Description of a sweep for its runs; shared runs are of two sweeps where name or factors differ."""
    first = composition.jobs[0].config
    named = first.experiment.name if first.experiment else None
    name = named or "-".join(composition.factors) or "run"
    return SweepConfig(
        id=digest([name, composition.factors, sorted(run.run_id for run in runs)])[:16],
        name=name,
        invocation=uuid.uuid4().hex,
        jobs=len(runs),
        number=1,
        run=None,
        launcher=composition.launcher,
        factors=composition.factors,
    )


def fetch_prompt_examples(jobs: Sequence[Job], say: Callable[[str], None]) -> None:
    """Fetch the files of examples that are not beside scored files; `say` is told of each that cannot be had.

    They decide what is scored in all jobs, so they are fetched before the first is judged, and not where all artefacts
    of all jobs are stored: these were made without.
    """
    missing = {
        each: OutputRoot.of(job.config).cache for job in jobs for each in missing_examples(job.config.evaluation)
    }
    if not missing or all(map(_is_stored, jobs)):
        return
    for each, cache in missing.items():
        if line := fetch_missing(each, cache):
            say(line)


def _is_stored(job: Job) -> bool:
    """True if nothing is left to be made for a job; False where that cannot be known."""
    root = OutputRoot.of(job.config)
    try:
        nodes = build_graph(job.config, root.cache)
    except ParibusError:
        return False
    return not to_make(needed_for(nodes, job.config.until), root.store)


def check_root_and_launcher(runs: Sequence[PreparedRun]) -> Iterator[Problem]:
    """Yield what is wrong with root and launcher where anything is left to make; no directory is made."""
    if _has_missing_runs(runs):
        if message := OutputRoot.of(runs[0].job.config).unwritable():
            yield Problem("root", message)
        yield from check_launcher(runs)


def check_launcher(runs: Sequence[PreparedRun]) -> Iterator[Problem]:
    """Yield a problem where commands of SLURM are missing, since submitit's error for a lost job does not name them."""
    submits = runs and runs[0].launcher == SLURM
    absent = [command for command in COMMANDS_OF_SLURM if submits and shutil.which(command) is None]
    if absent and _has_missing_runs(runs):
        verb = "is" if len(absent) == 1 else "are"
        yield Problem(
            "hydra/launcher",
            f"{SLURM} submits to SLURM, of which {' and '.join(absent)} {verb} not here; give the command where SLURM "
            "is, or take basic, joblib or submitit_local",
        )


def _has_missing_runs(runs: Sequence[PreparedRun]) -> bool:
    """True if a launcher would get any of the runs."""
    root = OutputRoot.of(runs[0].job.config)
    return not all(is_done(run.run_id, run.nodes, root, run.job.config.until) for run in runs)


@contextmanager
def overlay(cache: Path) -> Iterator[Path]:
    """A directory that has what `cache` remembers and takes what is found out until the block ends; `cache` stays.

    A writer replaces an entry by a rename, which leaves what a link leads to as it is.
    """
    with tempfile.TemporaryDirectory(prefix="paribus-") as aside:
        for entry in cache.glob("*.*"):
            if entry.is_file():
                (Path(aside) / entry.name).symlink_to(entry.resolve())
        yield Path(aside)
