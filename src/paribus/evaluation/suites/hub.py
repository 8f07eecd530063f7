"""Benchmarks of the Hugging Face hub, written as the files that every other benchmark is read from.

So an item is the same wherever its record comes from, and what was fetched once needs no network again.
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, Hub
from paribus.evaluation.suites.files import FEWSHOT_SPLIT, split_file
from paribus.evaluation.suites.translations import TranslationSet
from paribus.stage import cache_alone_without_network

Splits = Mapping[str, Iterable[Mapping[str, Any]]]
"""The records of a data set by split."""


def fetch(data: Path, benchmark: Benchmark | TranslationSet) -> None:
    """Write the scored split, and the training split that examples come from, below `data`, unless the scored is there.

    Raises DataError where the benchmark is on no hub, or its data set neither there nor in the Hugging Face cache.
    """
    if _is_there(data, benchmark):
        return
    hub, scored, directory = benchmark.hub, benchmark.split, benchmark.directory
    if hub is None:
        expected = data / directory / f"{scored}.jsonl"
        raise DataError(f"evaluation.source: task {benchmark.name} is on no hub data set known here; give {expected}")
    elsewhere = hub.train and hub.train_path is not None
    if elsewhere and isinstance(benchmark, Benchmark) and lacks_training(data, benchmark):
        fetch_training(data, benchmark)
    examples = [FEWSHOT_SPLIT] if hub.train and not elsewhere else []
    write_splits(data, directory, (_load(hub, benchmark.name, scored), hub.path), scored, examples)


def lacks_training(data: Path, benchmark: Benchmark) -> bool:
    """Whether the hub has a training split of the benchmark that is not below `data`."""
    trained = benchmark.hub is not None and benchmark.hub.train
    return trained and split_file(data, benchmark.directory, FEWSHOT_SPLIT) is None


def fetch_training(data: Path, benchmark: Benchmark) -> None:
    """Write the training split alone, where the data set has one; DataError where that cannot be had."""
    if benchmark.hub is not None:
        found = _load(_training_hub(benchmark.hub), benchmark.name, FEWSHOT_SPLIT)
        write_some(data, benchmark.directory, found, [FEWSHOT_SPLIT])


def training_set(benchmark: Benchmark) -> str | None:
    """The data set of the hub that has the training split, by name and configuration; None for a directory here."""
    hub = None if benchmark.hub is None else _training_hub(benchmark.hub)
    return None if hub is None or Path(hub.path).is_dir() else _named(hub)


def _training_hub(hub: Hub) -> Hub:
    return replace(hub, path=hub.train_path or hub.path)


def write_splits(
    data: Path, directory: str, found: tuple[Splits, str], scored: str, examples: Sequence[str] = ()
) -> None:
    """Write the scored split of a data set, and before it those of examples that it has, where they are not there.

    `found` has the name of the data set beside it. DataError where it has no such split.
    """
    splits, named = found
    if scored not in splits:
        known = ", ".join(map(str, splits))
        raise DataError(f"evaluation.source: {named} has no split {scored} for task {directory}; it has {known}")
    write_some(data, directory, splits, [*examples, scored])


def write_some(data: Path, directory: str, splits: Splits, wanted: Collection[str]) -> None:
    """Write those of the wanted splits that a data set has, where they are not there."""
    for split in wanted:
        if split in splits and split_file(data, directory, split) is None:
            _write(data / directory / f"{split}.jsonl", splits[split])


def fetch_archive(data: Path, directory: str, split: str, address: str) -> None:
    """Write JSON lines at `address` of the hub as `<data>/<directory>/<split>.jsonl`, unless that split is there.

    `address` may be inside an archive (`zip://FILE::https://...`). Raises DataError where it cannot be had.
    """
    if split_file(data, directory, split) is None:
        found = load(address, directory, "json", data_files={split: address}, split=split)
        _write(data / directory / f"{split}.jsonl", found)


def _is_there(data: Path, benchmark: Benchmark | TranslationSet) -> bool:
    if isinstance(benchmark, TranslationSet):
        return benchmark.file.find_in(data) is not None
    return split_file(data, benchmark.directory, benchmark.split) is not None


def _load(hub: Hub, task: str, split: str) -> Splits:
    name = _named(hub)
    options: dict[str, Any] = {}
    if hub.files:  # what the hub knows of the whole data set does not hold for a split of it
        options = {"data_files": {split: hub.files.format(split=split)}, "verification_mode": "no_checks"}
    if hub.examples is None:
        found: Splits = load(name, task, hub.path, hub.name, **options)
        return found
    found = load(name, task, hub.path, hub.name, streaming=True, **options)
    most = {FEWSHOT_SPLIT: hub.examples}
    return {part: _streamed(islice(records, most.get(part)), name, task) for part, records in found.items()}


def _named(hub: Hub) -> str:
    return f"{hub.path} ({hub.name})" if hub.name else hub.path


def load(named: str, task: str, *arguments: Any, **options: Any) -> Any:
    """What `datasets.load_dataset` gives for the arguments; DataError with the name of the data set and its task."""
    import datasets

    try:
        with cache_alone_without_network():
            return datasets.load_dataset(*arguments, **options)
    except Exception as error:  # the library, the hub's client and its HTTP client have no class of errors in common
        raise _not_had(named, task, error) from error


def _not_had(named: str, task: str, error: Exception) -> DataError:
    from datasets.exceptions import DatasetsError

    why, cause = "is neither reachable nor in the Hugging Face cache; connect once, or", error
    if isinstance(error, DatasetsError) and not isinstance(error, OSError):
        why, cause = "cannot be read;", error.__cause__ or error  # such an error says less than its cause
    return DataError(
        f"evaluation.source: task {task} needs the hub's {named}, which {why} give its files with "
        f"evaluation.source=files ({' '.join(str(cause).split())})"
    )


def _streamed(records: Iterable[Mapping[str, Any]], named: str, task: str) -> Iterator[Mapping[str, Any]]:
    """Records that are downloaded as they are read."""
    try:
        yield from records
    except Exception as error:  # as in `load`
        raise _not_had(named, task, error) from error


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write the file, unless another process has done so meanwhile: whoever reads that would see it change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, default=partial(_as_text, path)) + "\n")
        if not path.exists():
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _as_text(path: Path, value: object) -> str:
    """A value that JSON has no form for, as lm-eval's templates write it; DataError where that is no text."""
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise DataError(
        f"evaluation.source: {path} cannot be written, since its data set has values of {type(value).__name__}, which "
        "are no text; give that file with evaluation.source=files, without them"
    )
