"""Everything about an evaluation that can be refused before anything runs.

Imports nothing heavy, unless a benchmark must be fetched from the hub.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ParibusError
from paribus.evaluation.suites.files import benchmark_file, fewshot_file
from paribus.evaluation.suites.hub import fetch
from paribus.evaluation.suites.registry import BENCHMARKS, prompted, task_names, unknown_task
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.texts import HELDOUT_CLEAN, HELDOUT_CONCATENATED, NAME, text_file
from paribus.evaluation.suites.translations import TRANSLATIONS

Problem = tuple[str, str]


def problems(config: EvaluationConfig) -> list[Problem]:
    """(config path, what is wrong and what would be right) of every problem; empty when there is none."""
    texts = [name for name in dict.fromkeys(config.texts) if not _wrong_text(name)]
    missing = [_missing(config, name) for name in config.tasks]
    missing += [_refused(text_file(name).find, config.data) for name in texts]
    return wrong_names(config) + [problem for found in missing for problem in found]


def wrong_names(config: EvaluationConfig) -> list[Problem]:
    """The problems that no file decides."""
    found = [("evaluation.tasks", problem) for name in config.tasks if (problem := unknown_task(name))]
    found += [("evaluation.texts", problem) for name in config.texts if (problem := _wrong_text(name))]
    for field in ("tasks", "texts"):
        counts = Counter(getattr(config, field)).items()
        found += [(f"evaluation.{field}", f"names {name} {count} times") for name, count in counts if count > 1]
    return found + [
        (f"evaluation.shots_of.{name}", problem) for name in config.shots_of or {} if (problem := _no_shots(name))
    ]


def _wrong_text(name: str) -> str | None:
    if name in task_names():
        return f"{name!r} is the name of a task; give the set, and its directory, another name"
    if name in (HELDOUT_CLEAN, HELDOUT_CONCATENATED):
        return (
            f"{name!r} is what a run calls a set of held-out documents; give the set, and its directory, another name"
        )
    if NAME.fullmatch(name) is None:
        return f"{name!r} must be letters, digits, `_`, `-` and `.`, a letter or digit first: it names a directory"
    return None


def _no_shots(name: str) -> str | None:
    problem = unknown_task(name)
    return problem or (None if prompted((name,)) else f"{name} has no prompt, so no examples in it; leave it out")


def _missing(config: EvaluationConfig, name: str) -> list[Problem]:
    if name in SEGMENTATIONS:
        return _refused(SEGMENTATIONS[name].find, config.data)
    if name in TRANSLATIONS or name in BENCHMARKS:
        return _refused(_look_for, config, name)
    return []


def _look_for(config: EvaluationConfig, name: str) -> None:
    """DataError or ConfigurationError where the files of a task are not there and on no hub."""
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
        path, _, message = str(error).partition(": ")
        return [(path, message)]
    return []
