"""Files of examples that prompts ask for and that are not beside the scored file: had from the hub, or done without."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.identity import digest
from paribus.errors import DataError, ParibusError
from paribus.evaluation.borrowed.lookup import definition
from paribus.evaluation.borrowed.records import asked_for, fetch_examples, is_here, lacks_examples
from paribus.evaluation.preflight import wrong_names
from paribus.evaluation.suites.files import FEWSHOT_SPLIT, split_file
from paribus.evaluation.suites.hub import fetch_training, lacks_training, training_set
from paribus.evaluation.suites.registry import BENCHMARKS, is_ours
from paribus.store import files
from paribus.store.files import is_writable


@dataclass(frozen=True)
class MissingExamples:
    """Those of one task, whose scored file is there."""

    task: str
    directory: Path
    split: str
    data_set: str | None
    """The hub's, with all that decides which splits it has; None for a directory here, which may have others later."""
    fetch: Callable[[], None] = field(compare=False)
    """Writes the split where the data set has one; DataError where that cannot be had."""


def missing_examples(config: EvaluationConfig) -> Iterator[MissingExamples]:
    """The tasks with examples in prompts whose file of these `evaluation.source` may fetch; none of a wrong name."""
    if config.source != "hub" or config.data is None or wrong_names(config):
        return
    for name in config.tasks:
        with suppress(ParibusError):  # two files of one split, which are refused elsewhere
            if any(config.task_shots(name)) and (found := _missing(config, Path(config.data), name)):
                yield found


def _missing(config: EvaluationConfig, data: Path, name: str) -> MissingExamples | None:
    if not is_ours(name):
        task = definition(config, name)
        if split_file(data, name, task.scored_split) is None or not lacks_examples(data, task):
            return None
        fetch = partial(fetch_examples, data, task)
        asked = None if is_here(task) else asked_for(task)
        return MissingExamples(name, data / name, str(task.fewshot_split), asked, fetch)
    ours = BENCHMARKS.get(name)
    if ours is None or split_file(data, ours.directory, ours.split) is None or not lacks_training(data, ours):
        return None
    fetch = partial(fetch_training, data, ours)
    return MissingExamples(name, data / ours.directory, FEWSHOT_SPLIT, training_set(ours), fetch)


def fetch_missing(missing: MissingExamples, cache: Path) -> str | None:
    """Write the file; where it cannot be had, or not be written, a line that says so and what is taken instead.

    A data set without such a split has none to give. That is no error, and of the hub's remembered in `cache`, so that
    they are not asked again.
    """
    absent = cache / f"{digest([missing.data_set, missing.split])[:32]}.absent"
    if missing.data_set is not None and absent.is_file():
        return None
    try:
        missing.fetch()
    except (DataError, OSError) as error:
        why = " ".join(str(error).removeprefix("evaluation.source: ").split())
        return (
            f"evaluation.data: {missing.directory / missing.split}.jsonl is not there and cannot be fetched, so "
            f"examples of task {missing.task} are split off its scored file: {why}"
        )
    has_none = split_file(missing.directory.parent, missing.directory.name, missing.split) is None
    if has_none and missing.data_set is not None and is_writable(cache):
        with suppress(OSError):  # what cannot be remembered is found again
            cache.mkdir(parents=True, exist_ok=True)
            files.write_text(absent, f"{missing.data_set} has no split {missing.split}\n")
    return None
