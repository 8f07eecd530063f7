"""Benchmarks of the Hugging Face hub, written as the files that every other benchmark is read from.

So an item is the same wherever its record comes from, and what was fetched once needs no network again.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, Hub
from paribus.evaluation.suites.files import FEWSHOT_SPLIT, split_file
from paribus.evaluation.suites.translations import TranslationSet


def fetch(data: Path, benchmark: Benchmark | TranslationSet) -> None:
    """Write the scored split, and the training split where it is used, below `data`, unless the scored one is there.

    Raises DataError where the benchmark is on no hub, or its data set neither there nor in the Hugging Face cache.
    """
    if _is_there(data, benchmark):
        return
    if benchmark.hub is None:
        expected = data / benchmark.directory / f"{benchmark.split}.jsonl"
        raise DataError(f"evaluation.source: task {benchmark.name} is on no hub data set known here; give {expected}")
    found = _load(benchmark.hub, benchmark.name, benchmark.split)
    if benchmark.split not in found:
        known = ", ".join(map(str, found))
        raise DataError(
            f"evaluation.source: {benchmark.hub.path} has no split {benchmark.split} for task {benchmark.name}; "
            f"it has {known}"
        )
    splits = [FEWSHOT_SPLIT] if benchmark.hub.train and FEWSHOT_SPLIT in found else []
    for split in (*splits, benchmark.split):  # the scored one last: where it is, all is there
        if split_file(data, benchmark.directory, split) is None:
            _write(data / benchmark.directory / f"{split}.jsonl", found[split])


def fetch_archive(data: Path, directory: str, split: str, address: str) -> None:
    """Write JSON lines at `address` of the hub as `<data>/<directory>/<split>.jsonl`, unless that split is there.

    `address` may be inside an archive (`zip://FILE::https://...`). Raises DataError where it cannot be had.
    """
    if split_file(data, directory, split) is None:
        found = _loaded(address, directory, "json", data_files={split: address}, split=split)
        _write(data / directory / f"{split}.jsonl", found)


def _is_there(data: Path, benchmark: Benchmark | TranslationSet) -> bool:
    if isinstance(benchmark, TranslationSet):
        return benchmark.file.find_in(data) is not None
    return split_file(data, benchmark.directory, benchmark.split) is not None


def _load(hub: Hub, task: str, split: str) -> Mapping[str, Iterable[Mapping[str, Any]]]:
    name = f"{hub.path} ({hub.name})" if hub.name else hub.path
    options: dict[str, Any] = {}
    if hub.files:  # what the hub knows of the whole data set does not hold for a split of it
        options = {"data_files": {split: hub.files.format(split=split)}, "verification_mode": "no_checks"}
    found: Mapping[str, Iterable[Mapping[str, Any]]] = _loaded(name, task, hub.path, hub.name, **options)
    return found


def _loaded(named: str, task: str, *arguments: Any, **options: Any) -> Any:
    """What `datasets.load_dataset` gives for the arguments."""
    import datasets

    try:
        return datasets.load_dataset(*arguments, **options)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise DataError(
            f"evaluation.source: task {task} needs the hub's {named}, which is neither reachable nor in the Hugging "
            f"Face cache; connect once, or give its files with evaluation.source=files ({error})"
        ) from error


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
    with aside.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    aside.replace(path)
