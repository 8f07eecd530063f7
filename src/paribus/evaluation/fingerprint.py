"""What the tasks depend on that is not in the configuration: the files of benchmarks and of other things scored, and
what lm-eval or the user's YAML says of a task that is none of ours."""

from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.identity import digest
from paribus.errors import ConfigurationError
from paribus.evaluation.borrowed.items import count_examples, pinned
from paribus.evaluation.borrowed.lookup import definition
from paribus.evaluation.borrowed.records import split_files
from paribus.evaluation.measures.segmentation import read_segmented
from paribus.evaluation.suites.benchmark import Benchmark
from paribus.evaluation.suites.files import benchmark_file, fewshot_file, read_benchmark
from paribus.evaluation.suites.pool import split_pool
from paribus.evaluation.suites.registry import BENCHMARKS, is_ours
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.texts import read_texts, text_file
from paribus.evaluation.suites.translations import TRANSLATIONS, read_translations
from paribus.evaluation.tasks.items import ItemSet
from paribus.stage import JSON
from paribus.store.files import FileDigests, is_writable, write_text


def fingerprint(config: EvaluationConfig, digests: FileDigests) -> dict[str, JSON]:
    """Digests of the scored file and, where there is one, the training split of each benchmark, by task; and `texts`,
    digests of sets of texts by name.

    Raises ConfigurationError for an unknown task and for more examples in the prompt than a benchmark has; DataError
    for a file that is missing, torn or empty, or has a record that its reader cannot take. Each is read whole once.
    """
    tasks: dict[str, JSON] = {name: found for name in config.tasks if (found := _task(name, config, digests))}
    texts: dict[str, JSON] = {
        name: _whole(text_file(name).find(config.data), digests, _read_texts) for name in config.texts
    }
    return tasks | ({"texts": texts} if texts else {})


def _task(name: str, config: EvaluationConfig, digests: FileDigests) -> dict[str, JSON] | None:
    """None for a task without a file."""
    if name in TRANSLATIONS:
        chosen = TRANSLATIONS[name]
        path = chosen.file.find(config.data)
        return {"scored": _whole(path, digests, lambda path: read_translations(path, chosen), chosen.directory)}
    if name in SEGMENTATIONS:
        return {"scored": _whole(SEGMENTATIONS[name].find(config.data), digests, read_segmented)}
    if not is_ours(name):
        return _borrowed(name, config, digests)
    if name not in BENCHMARKS:
        return None
    scored = benchmark_file(config.data, BENCHMARKS[name])
    fewshot = fewshot_file(scored, BENCHMARKS[name])
    files: dict[str, JSON] = {"scored": digests.of(scored), "fewshot": digests.of(fewshot) if fewshot else None}
    found = _Examples(name, fewshot, lambda shots: len(_items(BENCHMARKS[name], scored, fewshot, shots).fewshot))
    found.require(config, files, digests)
    return files


def _borrowed(name: str, config: EvaluationConfig, digests: FileDigests) -> dict[str, JSON]:
    task = definition(config, name)
    files = split_files(config, task)
    found = pinned(task, files, digests)
    examples = _Examples(name, files.fewshot, lambda shots: count_examples(task, files, shots))
    examples.require(config, found, digests)
    return found


def _items(benchmark: Benchmark, scored: Path, fewshot: Path | None, shots: int) -> ItemSet:
    training = None if fewshot is None else read_benchmark(fewshot, benchmark)
    return split_pool(read_benchmark(scored, benchmark), training, shots)


@dataclass(frozen=True)
class _Examples:
    """The examples of a task, which are counted once for each content of its files."""

    name: str
    file: Path | None
    count: Callable[[int], int]
    """How many there are for prompts of so many."""

    def require(self, config: EvaluationConfig, files: Mapping[str, JSON], digests: FileDigests) -> None:
        """ConfigurationError where prompts are to have more."""
        shots = max(config.task_shots(self.name))
        # By all that decides: a task of the user's own has examples in its YAML, and code that chooses among them.
        mark = f"{digest(dict(files))[:32]}.{self.name}.{shots}.examples"
        available = _counted_once(digests.directory / mark, lambda: self.count(shots))
        source = (
            f"in {self.file}" if self.file else "a quarter of the scored file at most, as no training file is there"
        )
        require_examples(config, self.name, available, source)


def require_examples(config: EvaluationConfig, name: str, available: int, source: str) -> None:
    """ConfigurationError where a task is to have more examples in the prompt than there are."""
    shots = max(config.task_shots(name))
    if shots > available:
        field = f"shots_of.{name}" if name in (config.shots_of or {}) else "shots"
        raise ConfigurationError(
            f"evaluation.{field} asks for {shots} examples in the prompt, but task {name} has {available} ({source}); "
            "lower it or give more data"
        )


def _whole(path: Path, digests: FileDigests, read: Callable[[Path], Sized], of: str = "") -> str:
    """Digest of a file that `read` reads to its end, which is tried once for each of its contents."""
    digest = digests.of(path)

    _counted_once(digests.directory / f"{digest}.{of or read.__name__}.whole", lambda: len(read(path)))
    return digest


def _counted_once(mark: Path, count: Callable[[], int]) -> int:
    """What `count` gives, remembered in the file `mark` where its directory may be written."""
    with suppress(OSError, ValueError):
        return int(mark.read_text(encoding="utf-8"))
    found = count()
    if is_writable(mark.parent):
        with suppress(OSError):  # what cannot be remembered is found again
            mark.parent.mkdir(parents=True, exist_ok=True)
            write_text(mark, str(found))
    return found


def _read_texts(path: Path) -> list[tuple[str, str]]:
    return list(read_texts(path))
