"""Files of examples that prompts ask for and that are not beside the scored file: had from the hub, or done without."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError, ParibusError
from paribus.evaluation.borrowed.lookup import definition
from paribus.evaluation.borrowed.records import fetch_examples, lacks_examples
from paribus.evaluation.preflight import wrong_names
from paribus.evaluation.suites.files import FEWSHOT_SPLIT, split_file
from paribus.evaluation.suites.hub import fetch_training, lacks_training
from paribus.evaluation.suites.registry import BENCHMARKS, is_ours


@dataclass(frozen=True)
class MissingExamples:
    """Those of one task, whose scored file is there."""

    task: str
    data: Path
    include_path: str | None


def missing_examples(config: EvaluationConfig) -> Iterator[MissingExamples]:
    """The tasks with examples in prompts whose file of these `evaluation.source` may fetch; none of a wrong name."""
    if config.source != "hub" or config.data is None or wrong_names(config):
        return
    for name in config.tasks:
        if any(config.task_shots(name)) and _missing(config, Path(config.data), name):
            yield MissingExamples(name, Path(config.data), config.include_path)


def _missing(config: EvaluationConfig, data: Path, name: str) -> bool:
    """False also where there is more than one file of a split, which is refused elsewhere."""
    try:
        if not is_ours(name):
            task = definition(config, name)
            return split_file(data, name, task.scored_split) is not None and lacks_examples(data, task)
        found = BENCHMARKS.get(name)
        there = found is not None and split_file(data, found.directory, found.split) is not None
        return found is not None and there and lacks_training(data, found)
    except ParibusError:
        return False


def fetch_missing(config: EvaluationConfig, missing: MissingExamples) -> str | None:
    """Write the file; where it cannot be had, or not be written, a line that says so and what is taken instead."""
    name = missing.task
    benchmark = BENCHMARKS.get(name)
    try:
        if benchmark is not None:
            directory, split = benchmark.directory, FEWSHOT_SPLIT
            fetch_training(missing.data, benchmark)
        else:
            task = definition(config, name)
            directory, split = name, str(task.fewshot_split)
            fetch_examples(missing.data, task)
    except (DataError, OSError) as error:
        why = " ".join(str(error).removeprefix("evaluation.source: ").split())
        path = missing.data / directory / f"{split}.jsonl"
        return (
            f"evaluation.data: {path} is not there and cannot be fetched, so examples of task {name} are split off its "
            f"scored file: {why}"
        )
    return None
