"""Refusal of an evaluation before anything runs, and fingerprints of the files that it reads.

The tasks depend on files of benchmarks and of other things scored, and on what lm-eval or the user's YAML says of a
task that is none of ours. Imports nothing heavy, unless a benchmark must be fetched from the hub.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.identity import digest
from paribus.errors import ConfigurationError, DataError, ParibusError, Problem
from paribus.evaluation.benchmarks import BENCHMARKS, CONTINUATION, is_ours, prompted
from paribus.evaluation.data_files import (
    FEWSHOT_SPLIT,
    HELDOUT_CLEAN,
    HELDOUT_CONCATENATED,
    SEGMENTATIONS,
    TEXT_SET_NAME,
    TRANSLATIONS,
    benchmark_file,
    benchmark_items,
    concatenated_name,
    fetch_benchmark,
    fetch_training,
    fewshot_file,
    lacks_training,
    read_texts,
    read_translations,
    split_file,
    text_file,
    training_set,
)
from paribus.evaluation.lm_eval_tasks import (
    count_examples,
    data_set_text,
    fetch_examples,
    fetch_records,
    find_definition,
    is_here,
    lacks_examples,
    pinned,
    split_files,
    task_problem,
)
from paribus.evaluation.segmentation import read_segmented
from paribus.stage import JSON
from paribus.store.files import FileDigests, is_writable, write_text

_MOST_ALIKE = 10
"""Tasks that each have a line of their own where there is no directory."""


def check_evaluation(config: EvaluationConfig) -> list[Problem]:
    """Problems of tasks and their files; empty where there is none."""
    problems = check_task_names(config)
    if _lacks_include_path(config):
        problems.append(Problem("evaluation.include_path", f"{config.include_path} is not a directory"))
        known = [name for name in config.tasks if is_ours(name)]
    else:
        known = [name for name in config.tasks if not _wrong_task(config, name)]
    problems += _joined_problems(config, [each for name in known for each in _raised_problems(_look_for, config, name)])
    for name in dict.fromkeys(config.texts):
        if not _wrong_text(config, name):
            problems += _raised_problems(text_file(name).find, config.data)
    return problems


def _joined_problems(config: EvaluationConfig, problems: list[Problem]) -> list[Problem]:
    """Files that tasks lack, the first of many for all where none has a directory to look in."""
    alike = [each for each in problems if each[0] == "evaluation.data"]
    if config.data is not None or len(alike) <= _MOST_ALIKE:
        return problems
    path, first = alike[0]
    more = f"{first}; {len(alike) - 1} other tasks need it too"
    return [Problem(path, more), *(each for each in problems if each not in alike)]


def check_task_names(config: EvaluationConfig) -> list[Problem]:
    """The problems that no file decides."""
    listed = [each for name in config.tasks for each in _wrong_task(config, name)]
    listed += [Problem("evaluation.texts", wrong) for name in config.texts if (wrong := _wrong_text(config, name))]
    for names in ("tasks", "texts"):
        counts = Counter(getattr(config, names)).items()
        listed += [Problem(f"evaluation.{names}", f"names {name} {count} times") for name, count in counts if count > 1]
    for name in config.shots_of or {}:
        if name not in config.tasks and (problems := _wrong_task(config, name)):
            listed.append(Problem(f"evaluation.shots_of.{name}", problems[0].message))
        elif not prompted((name,)):
            reason = f"{name} has no prompt, so no examples in it; leave it out"
            listed.append(Problem(f"evaluation.shots_of.{name}", reason))
    return listed


def _wrong_task(config: EvaluationConfig, name: str) -> list[Problem]:
    """Nothing where the directory that may define the task is not there."""
    if _lacks_include_path(config):
        return []
    try:
        wrong = task_problem(config, name)
    except ParibusError as error:
        return [*error.problems]
    return [Problem("evaluation.tasks", wrong)] if wrong else []


def _lacks_include_path(config: EvaluationConfig) -> bool:
    return config.include_path is not None and not Path(config.include_path).is_dir()


def _wrong_text(config: EvaluationConfig, name: str) -> str | None:
    if is_ours(name) or name in config.tasks:
        return f"{name!r} is the name of a task; give the set, and its directory, another name"
    if name in (HELDOUT_CLEAN, HELDOUT_CONCATENATED):
        return f"{name!r} is the name of a set of held-out documents; give the set, and its directory, another name"
    if name in map(concatenated_name, config.texts):
        return f"{name!r} is what a run calls the texts of another set end to end; give the set another name"
    if TEXT_SET_NAME.fullmatch(name) is None:
        return f"{name!r} must be letters, digits, `_`, `-` and `.`, a letter or digit first: it names a directory"
    return None


def _look_for(config: EvaluationConfig, name: str) -> None:
    """DataError or ConfigurationError where the files of a task are not there and on no hub."""
    if name in SEGMENTATIONS:
        SEGMENTATIONS[name].find(config.data)
    elif not is_ours(name):
        task = find_definition(config, name)
        if config.source == "hub":
            fetch_records(config, task)
        split_files(config, task)
    elif name != CONTINUATION:
        if config.source == "hub" and config.data is not None:
            fetch_benchmark(Path(config.data), TRANSLATIONS.get(name) or BENCHMARKS[name])
        if name in TRANSLATIONS:
            TRANSLATIONS[name].file.find(config.data)
        else:
            fewshot_file(benchmark_file(config.data, BENCHMARKS[name]), BENCHMARKS[name])


def _raised_problems(look: Callable[..., Any], *arguments: Any) -> list[Problem]:
    try:
        look(*arguments)
    except ParibusError as error:
        return [*error.problems]
    return []


@dataclass(frozen=True)
class MissingExamples:
    """Missing examples of one task, whose scored file is there."""

    task: str
    directory: Path
    split: str
    data_set: str | None
    """The hub's, with all that decides which splits it has; None for a directory here, which may have others later."""
    fetch: Callable[[], None] = field(compare=False)
    """Writes the split where the data set has one; DataError where that cannot be had."""


def missing_examples(config: EvaluationConfig) -> Iterator[MissingExamples]:
    """The tasks with examples in prompts whose file of these `evaluation.source` may fetch; none of a wrong name."""
    if config.source != "hub" or config.data is None or check_task_names(config):
        return
    for name in config.tasks:
        with suppress(ParibusError):  # two files of one split, which are refused elsewhere
            if any(config.task_shots(name)) and (missing := _missing_of_task(config, Path(config.data), name)):
                yield missing


def _missing_of_task(config: EvaluationConfig, data: Path, name: str) -> MissingExamples | None:
    if not is_ours(name):
        task = find_definition(config, name)
        if split_file(data, name, task.scored_split) is None or not lacks_examples(data, task):
            return None
        data_set = None if is_here(task) else data_set_text(task)
        fetch = partial(fetch_examples, data, task)
        return MissingExamples(name, data / name, str(task.fewshot_split), data_set, fetch)
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
        why = " ".join((error.problems[0].message if isinstance(error, DataError) else str(error)).split())
        return (
            f"evaluation.data: {missing.directory / missing.split}.jsonl is not there and cannot be fetched, so "
            f"examples of task {missing.task} are split off its scored file: {why}"
        )
    has_none = split_file(missing.directory.parent, missing.directory.name, missing.split) is None
    if has_none and missing.data_set is not None:
        _remember(absent, f"{missing.data_set} has no split {missing.split}\n")
    return None


def tasks_fingerprint(config: EvaluationConfig, digests: FileDigests) -> dict[str, JSON]:
    """Digests of the scored file and, where there is one, the training split of each benchmark, by task; and `texts`,
    digests of sets of texts by name.

    Raises ConfigurationError for an unknown task and for more examples in the prompt than a benchmark has; DataError
    for a file that is missing, torn or empty, or has a record that its reader cannot take. Each is read whole once.
    """
    tasks: dict[str, JSON] = {name: pins for name in config.tasks if (pins := _task_fingerprint(name, config, digests))}
    texts: dict[str, JSON] = {
        name: _whole_digest(text_file(name).find(config.data), digests, lambda path: list(read_texts(path)))
        for name in config.texts
    }
    return tasks | ({"texts": texts} if texts else {})


def _task_fingerprint(name: str, config: EvaluationConfig, digests: FileDigests) -> dict[str, JSON] | None:
    """None for a task without a file."""
    if name in TRANSLATIONS:
        chosen = TRANSLATIONS[name]
        path = chosen.file.find(config.data)
        return {"scored": _whole_digest(path, digests, lambda path: read_translations(path, chosen), chosen.directory)}
    if name in SEGMENTATIONS:
        return {"scored": _whole_digest(SEGMENTATIONS[name].find(config.data), digests, read_segmented)}
    if name == CONTINUATION:
        return None
    shots = max(config.task_shots(name))
    if is_ours(name):
        scored = benchmark_file(config.data, BENCHMARKS[name])
        fewshot = fewshot_file(scored, BENCHMARKS[name])
        pins: dict[str, JSON] = {"scored": digests.of(scored), "fewshot": digests.of(fewshot) if fewshot else None}
    else:
        task = find_definition(config, name)
        files = split_files(config, task)
        fewshot, pins = files[1], pinned(task, files, digests)

    def count() -> int:
        if is_ours(name):
            return len(benchmark_items(config.data, BENCHMARKS[name], shots).fewshot)
        return count_examples(task, files, shots)

    # By all that decides: a task of the user's own has examples in its YAML, and code that chooses among them.
    available = _counted_once(digests.directory / f"{digest(pins)[:32]}.{name}.{shots}.examples", count)
    source = f"in {fewshot}" if fewshot else "a quarter of the scored file at most, as no training file is there"
    require_examples(config, name, available, source)
    return pins


def require_examples(config: EvaluationConfig, name: str, available: int, source: str) -> None:
    """ConfigurationError where a task is to have more examples in the prompt than there are."""
    shots = max(config.task_shots(name))
    if shots > available:
        field = f"shots_of.{name}" if name in (config.shots_of or {}) else "shots"
        raise ConfigurationError(
            f"evaluation.{field} asks for {shots} examples in the prompt, but task {name} has {available} ({source}); "
            "lower it or give more data"
        )


def _whole_digest(path: Path, digests: FileDigests, read: Callable[[Path], Sized], of: str = "") -> str:
    """Digest of a file that `read` reads to its end, which is tried once for each of its contents."""
    sha256 = digests.of(path)
    _counted_once(digests.directory / f"{sha256}.{of or read.__name__}.whole", lambda: len(read(path)))
    return sha256


def _counted_once(mark: Path, count: Callable[[], int]) -> int:
    with suppress(OSError, ValueError):
        return int(mark.read_text(encoding="utf-8"))
    number = count()
    _remember(mark, str(number))
    return number


def _remember(mark: Path, text: str) -> None:
    if is_writable(mark.parent):
        with suppress(OSError):  # what cannot be remembered is found again
            mark.parent.mkdir(parents=True, exist_ok=True)
            write_text(mark, text)
