"""Everything about an evaluation that can be refused before anything runs.

Imports nothing heavy, unless a benchmark must be fetched from the hub.
"""

from collections import Counter
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ParibusError
from paribus.evaluation.suites.files import benchmark_file, fewshot_file
from paribus.evaluation.suites.hub import fetch
from paribus.evaluation.suites.registry import BENCHMARKS, unknown_task


def problems(config: EvaluationConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of every problem; empty when there is none."""
    return wrong_names(config) + [problem for name in config.tasks for problem in _missing(config, name)]


def wrong_names(config: EvaluationConfig) -> list[tuple[str, str]]:
    """The problems that no file decides."""
    found = [("evaluation.tasks", problem) for name in config.tasks if (problem := unknown_task(name))]
    found += [
        ("evaluation.tasks", f"names {name} {count} times")
        for name, count in Counter(config.tasks).items()
        if count > 1
    ]
    return found + [
        (f"evaluation.shots_of.{name}", problem) for name in config.shots_of or {} if (problem := unknown_task(name))
    ]


def _missing(config: EvaluationConfig, name: str) -> list[tuple[str, str]]:
    if name not in BENCHMARKS:
        return []
    try:
        if config.source == "hub" and config.data is not None:
            fetch(Path(config.data), BENCHMARKS[name])
        fewshot_file(benchmark_file(config.data, BENCHMARKS[name]), BENCHMARKS[name])
    except ParibusError as error:
        path, _, message = str(error).partition(": ")
        return [(path, message)]
    return []
