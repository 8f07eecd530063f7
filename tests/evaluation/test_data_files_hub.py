"""Benchmarks of the hub: a data set directory of the hub's name, and the cache of a data set without any network."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import datasets
import huggingface_hub
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.benchmarks import BENCHMARKS, MIXED_RECORDS
from paribus.evaluation.data_files import read_benchmark
from paribus.evaluation.preflight import check_evaluation, fetch_missing, missing_examples, tasks_fingerprint
from paribus.store.files import FileDigests
from support.benchmark_records import RECORDS

HELLASWAG = BENCHMARKS["hellaswag"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory where the hub's HellaSwag lies as a directory of its name, and no network."""
    for split, number in (("validation", 3), ("train", 2)):
        write_split(tmp_path / "Rowan" / "hellaswag", split, "hellaswag", "ctx_b", number)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_split(directory: Path, split: str, task: str, field: str, number: int) -> Path:
    """Records of a benchmark that differ in one field."""
    directory.mkdir(parents=True, exist_ok=True)
    records = (RECORDS[task] | {field: f"{split} {i}"} for i in range(number))
    path = directory / f"{split}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def config(data: Path, *tasks: str) -> EvaluationConfig:
    return EvaluationConfig(tasks=tasks, data=str(data), source="hub")


def test_records_of_the_hub_become_the_files_and_items_of_a_directory(place: Path) -> None:
    hub = config(place / "data", "hellaswag")
    assert check_evaluation(hub) == []
    files = {path.name: path for path in (place / "data" / "hellaswag").iterdir()}
    assert sorted(files) == ["train.jsonl", "validation.jsonl"]
    for name, path in files.items():
        assert read_benchmark(path, HELLASWAG) == read_benchmark(place / "Rowan" / "hellaswag" / name, HELLASWAG)
    shutil.rmtree(place / "Rowan")
    assert check_evaluation(hub) == []


def write_scored(place: Path) -> Path:
    """HellaSwag's scored file, in a directory without examples."""
    return write_split(place / "data" / "hellaswag", "validation", "hellaswag", "ctx_b", 8)


def fetch(evaluation: EvaluationConfig) -> list[str | None]:
    """What is said of each file of examples that is asked for, with a memory in the working directory."""
    return [fetch_missing(each, Path("memory")) for each in missing_examples(evaluation)]


def test_without_a_training_split_examples_are_split_off_and_a_line_says_so(place: Path) -> None:
    scored = write_scored(place)
    shutil.rmtree(place / "Rowan")
    hub = replace(config(place / "data", "hellaswag"), shots=(2,))
    (line,) = fetch(hub)
    assert line is not None and "\n" not in line
    assert f"{scored.with_name('train.jsonl')} is not there and cannot be fetched" in line
    assert "examples of task hellaswag are split off its scored file: task hellaswag needs the hub's Rowan" in line
    assert check_evaluation(hub) == []
    fingerprint = tasks_fingerprint(hub, FileDigests(place / "digests"))["hellaswag"]
    assert isinstance(fingerprint, dict) and fingerprint["fewshot"] is None


def test_a_training_split_of_gigabytes_is_read_as_far_as_examples_need_it(place: Path) -> None:
    amazon = place / "fancyzhx" / "amazon_polarity"
    write_split(amazon, "test", "amazon", "content", 30)
    train = write_split(amazon, "train", "amazon", "content", MIXED_RECORDS + 10)
    assert check_evaluation(config(place / "data", "amazon")) == []
    test_file, train_file = (place / "data" / "amazon" / f"{split}.jsonl" for split in ("test", "train"))
    assert len(read_benchmark(test_file, BENCHMARKS["amazon"])) == 30
    assert train_file.read_text().splitlines() == train.read_text().splitlines()[:MIXED_RECORDS]
    assert not list((place / "cache").rglob("*.arrow"))
