"""What the tasks depend on that is not in the configuration: the benchmarks' files."""

from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.fingerprint import file_digest
from paribus.errors import ConfigurationError
from paribus.evaluation.suites.files import benchmark_file, fewshot_file
from paribus.evaluation.suites.registry import benchmarks, unknown_task
from paribus.pipeline.context import JSON


def fingerprint(config: EvaluationConfig, cache: Path) -> dict[str, JSON]:
    """Digests of the scored file and, where there is one, the training split of each benchmark, by task.

    `cache` is a directory that remembers digests of files that have not changed. Raises ConfigurationError for an
    unknown task and DataError for a missing file.
    """
    for name in config.tasks:
        if problem := unknown_task(name):
            raise ConfigurationError(f"evaluation.tasks: {problem}")
    digests: dict[str, JSON] = {}
    for benchmark in benchmarks(config.tasks):
        scored = benchmark_file(config.data, benchmark)
        fewshot = fewshot_file(scored, benchmark)
        digests[benchmark.name] = {
            "scored": file_digest(scored, cache),
            "fewshot": file_digest(fewshot, cache) if fewshot else None,
        }
    return digests
