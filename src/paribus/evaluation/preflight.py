"""Everything about an evaluation that can be refused before anything runs.

Imports nothing heavy, unless a benchmark must be fetched from the hub.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ParibusError
from paribus.evaluation.borrowed.lookup import definition, problem
from paribus.evaluation.borrowed.records import fetch_records, split_files
from paribus.evaluation.suites.files import benchmark_file, fewshot_file
from paribus.evaluation.suites.hub import fetch
from paribus.evaluation.suites.registry import BENCHMARKS, CONTINUATION, is_ours, prompted
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.texts import HELDOUT_CLEAN, HELDOUT_CONCATENATED, NAME, concatenated, text_file
from paribus.evaluation.suites.translations import TRANSLATIONS

Problem = tuple[str, str]
_MOST_ALIKE = 10
"""Tasks that each have a line of their own where there is no directory."""


def problems(config: EvaluationConfig) -> list[Problem]:
    """(config path, what is wrong and what would be right) of every problem; empty when there is none."""
    texts = [name for name in dict.fromkeys(config.texts) if not _wrong_text(config, name)]
    missing = [[("evaluation.include_path", f"{config.include_path} is not a directory")]] if _gone(config) else []
    lacking = [found for name in config.tasks if _known(config, name) for found in _missing(config, name)]
    missing += [_in_one(config, lacking)]
    missing += [_refused(text_file(name).find, config.data) for name in texts]
    return wrong_names(config) + [each for found in missing for each in found]


def _in_one(config: EvaluationConfig, found: list[Problem]) -> list[Problem]:
    """What tasks lack, the first of many for all where none has a directory to look in."""
    alike = [each for each in found if each[0] == "evaluation.data"]
    if config.data is not None or len(alike) <= _MOST_ALIKE:
        return found
    path, first = alike[0]
    more = f"{first}; {len(alike) - 1} other tasks need it too"
    return [(path, more), *(each for each in found if each not in alike)]


def wrong_names(config: EvaluationConfig) -> list[Problem]:
    """The problems that no file decides."""
    found = [each for name in config.tasks for each in _wrong_task(config, name)]
    found += [("evaluation.texts", wrong) for name in config.texts if (wrong := _wrong_text(config, name))]
    for field in ("tasks", "texts"):
        counts = Counter(getattr(config, field)).items()
        found += [(f"evaluation.{field}", f"names {name} {count} times") for name, count in counts if count > 1]
    return found + [
        (f"evaluation.shots_of.{name}", wrong) for name in config.shots_of or {} if (wrong := _no_shots(config, name))
    ]


def _wrong_task(config: EvaluationConfig, name: str) -> list[Problem]:
    """Nothing where the directory that may define the task is not there."""
    if _gone(config):
        return []
    try:
        wrong = problem(config, name)
    except ParibusError as error:
        return [_split(error)]
    return [("evaluation.tasks", wrong)] if wrong else []


def _gone(config: EvaluationConfig) -> bool:
    return config.include_path is not None and not Path(config.include_path).is_dir()


def _known(config: EvaluationConfig, name: str) -> bool:
    """Whether there is more to ask of a task."""
    return is_ours(name) if _gone(config) else not _wrong_task(config, name)


def _wrong_text(config: EvaluationConfig, name: str) -> str | None:
    if is_ours(name) or name in config.tasks:
        return f"{name!r} is the name of a task; give the set, and its directory, another name"
    if name in (HELDOUT_CLEAN, HELDOUT_CONCATENATED):
        return (
            f"{name!r} is what a run calls a set of held-out documents; give the set, and its directory, another name"
        )
    if name in map(concatenated, config.texts):
        return f"{name!r} is what a run calls the texts of another set end to end; give the set another name"
    if NAME.fullmatch(name) is None:
        return f"{name!r} must be letters, digits, `_`, `-` and `.`, a letter or digit first: it names a directory"
    return None


def _no_shots(config: EvaluationConfig, name: str) -> str | None:
    if name not in config.tasks and (wrong := _wrong_task(config, name)):
        return wrong[0][1]
    return None if prompted((name,)) else f"{name} has no prompt, so no examples in it; leave it out"


def _missing(config: EvaluationConfig, name: str) -> list[Problem]:
    if name in SEGMENTATIONS:
        return _refused(SEGMENTATIONS[name].find, config.data)
    return [] if name == CONTINUATION else _refused(_look_for, config, name)


def _look_for(config: EvaluationConfig, name: str) -> None:
    """DataError or ConfigurationError where the files of a task are not there and on no hub."""
    if not is_ours(name):
        task = definition(config, name)
        if config.source == "hub":
            fetch_records(config, task)
        split_files(config, task)
        return
    chosen = TRANSLATIONS.get(name) or BENCHMARKS[name]
    if config.source == "hub" and config.data is not None:
        fetch(Path(config.data), chosen)
    if name in TRANSLATIONS:
        TRANSLATIONS[name].file.find(config.data)
    else:
        fewshot_file(benchmark_file(config.data, BENCHMARKS[name]), BENCHMARKS[name])


def _refused(look: Callable[..., Any], *arguments: Any) -> list[Problem]:
    """The problem that `look` raises, by the path that its message begins with."""
    try:
        look(*arguments)
    except ParibusError as error:
        return [_split(error)]
    return []


def _split(error: ParibusError) -> Problem:
    path, _, message = str(error).partition(": ")
    return path, message
