"""What the tasks depend on that is not in the configuration: the files of benchmarks and of other things scored."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.fingerprint import file_digest, is_writable
from paribus.errors import ConfigurationError
from paribus.evaluation.segmentation_corpus import read_segmented
from paribus.evaluation.suites.files import benchmark_file, fewshot_file, read_benchmark
from paribus.evaluation.suites.registry import BENCHMARKS, unknown_task
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.texts import read_texts, text_file
from paribus.evaluation.suites.translations import TRANSLATIONS, read_translations
from paribus.pipeline.context import JSON


def fingerprint(config: EvaluationConfig, cache: Path) -> dict[str, JSON]:
    """Digests of the scored file and, where there is one, the training split of each benchmark, by task; and `texts`,
    digests of sets of texts by name.

    `cache` is a directory that remembers digests of files that have not changed. Raises ConfigurationError for an
    unknown task and DataError for a missing file, or one that is torn, empty or has a record that its reader cannot
    take; each is read whole once.
    """
    for name in config.tasks:
        if problem := unknown_task(name):
            raise ConfigurationError(f"evaluation.tasks: {problem}")
    digests: dict[str, JSON] = {name: found for name in config.tasks if (found := _task(name, config, cache))}
    texts: dict[str, JSON] = {
        name: _whole(text_file(name).find(config.data), cache, _read_texts) for name in config.texts
    }
    if texts:
        digests["texts"] = texts
    return digests


def _task(name: str, config: EvaluationConfig, cache: Path) -> dict[str, JSON] | None:
    """None for a task without a file."""
    if name in TRANSLATIONS:
        chosen = TRANSLATIONS[name]
        path = chosen.file.find(config.data)
        return {"scored": _whole(path, cache, lambda path: read_translations(path, chosen), chosen.directory)}
    if name in SEGMENTATIONS:
        return {"scored": _whole(SEGMENTATIONS[name].find(config.data), cache, read_segmented)}
    if name not in BENCHMARKS:
        return None
    scored = benchmark_file(config.data, BENCHMARKS[name])
    files = {"scored": scored, "fewshot": fewshot_file(scored, BENCHMARKS[name])}
    return {
        role: None if path is None else _whole(path, cache, lambda path: read_benchmark(path, BENCHMARKS[name]), name)
        for role, path in files.items()
    }


def _whole(path: Path, cache: Path, read: Callable[[Path], Any], of: str = "") -> str:
    """Digest of a file that `read` reads to its end, which is tried once for each of its contents."""
    digest = file_digest(path, cache)
    mark = cache / f"{digest}.{of or read.__name__}.whole"
    if not mark.is_file():
        read(path)
        if is_writable(cache):
            cache.mkdir(parents=True, exist_ok=True)
            mark.touch()
    return digest


def _read_texts(path: Path) -> None:
    for _ in read_texts(path):
        pass
