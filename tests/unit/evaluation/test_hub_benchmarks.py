"""Benchmarks of the hub: a data set directory of the hub's name, and the cache of a data set without any network."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.fingerprint import fingerprint
from paribus.evaluation.preflight import problems
from paribus.evaluation.suites.files import read_benchmark
from paribus.evaluation.suites.registry import BENCHMARKS
from paribus.evaluation.suites.translations import TRANSLATIONS, read_translations
from paribus.store.file_digests import FileDigests
from support.benchmark_records import RECORDS
from support.borrowed_tasks import CHOICES, write_records, write_tasks

HELLASWAG = BENCHMARKS["hellaswag"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory where the hub's HellaSwag lies as a directory of its name, and no network."""
    directory = tmp_path / "Rowan" / "hellaswag"
    directory.mkdir(parents=True)
    for split, number in (("validation", 3), ("train", 2)):
        records = [RECORDS["hellaswag"] | {"ctx_b": f"{split} {i}"} for i in range(number)]
        (directory / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(data: Path, *tasks: str) -> EvaluationConfig:
    return EvaluationConfig(tasks=tasks, data=str(data), source="hub")


def test_records_of_the_hub_become_the_files_and_items_of_a_directory(place: Path) -> None:
    hub = config(place / "data", "hellaswag")
    assert problems(hub) == []
    files = {path.name: path for path in (place / "data" / "hellaswag").iterdir()}
    assert sorted(files) == ["train.jsonl", "validation.jsonl"]
    for name, path in files.items():
        assert read_benchmark(path, HELLASWAG) == read_benchmark(place / "Rowan" / "hellaswag" / name, HELLASWAG)
    hub = replace(hub, shots=(0,))
    before = fingerprint(hub, FileDigests(place / "digests"))
    shutil.rmtree(place / "Rowan")
    assert problems(hub) == []
    assert fingerprint(hub, FileDigests(place / "digests")) == before


def test_only_the_test_split_of_a_translation_set_is_fetched(place: Path) -> None:
    pairs = {"translation": [{"en": "a dog", "fr": "un chien"}, {"en": "a cat", "fr": "un chat"}]}
    directory = place / "wmt" / "wmt14" / "fr-en"
    directory.mkdir(parents=True)
    pq.write_table(pa.table(pairs), directory / "test-00000-of-00001.parquet")
    (directory / "train-00000-of-00030.parquet").write_bytes(b"no Parquet: too large to be read")
    assert problems(config(place / "data", "wmt14_fr_en")) == []
    (path,) = (place / "data" / "wmt14_en_fr").iterdir()
    found = read_translations(path, TRANSLATIONS["wmt14_fr_en"])
    assert [(pair.source, pair.target) for pair in found] == [("un chien", "a dog"), ("un chat", "a cat")]


def test_a_cached_data_set_needs_no_network(place: Path) -> None:
    datasets.load_dataset("Rowan/hellaswag")
    (place / "cache" / "hellaswag").rename(place / "cache" / "Rowan___hellaswag")
    shutil.rmtree(place / "Rowan")
    assert problems(config(place / "data", "hellaswag")) == []
    assert len(read_benchmark(place / "data" / "hellaswag" / "validation.jsonl", HELLASWAG)) == 3


def test_what_cannot_be_fetched_is_named_before_anything_runs(place: Path) -> None:
    found = problems(config(place / "data", "winogrande", "memotrap_proverb_ending", "hellaswag"))
    assert [path for path, _ in found] == ["evaluation.source", "evaluation.source"]
    assert "task winogrande needs the hub's allenai/winogrande (winogrande_xl)" in found[0][1]
    assert "neither reachable nor in the Hugging Face cache" in found[0][1]
    assert "task memotrap_proverb_ending is on no hub data set known here" in found[1][1]
    (place / "Rowan" / "hellaswag" / "validation.jsonl").unlink()
    shutil.rmtree(place / "data")
    ((_, message),) = problems(config(place / "data", "hellaswag"))
    assert "has no split validation" in message
    assert not (place / "data").exists()


def test_files_are_never_fetched_unasked(place: Path) -> None:
    ((path, message),) = problems(EvaluationConfig(tasks=("hellaswag",), data=str(place)))
    assert (path, "needs" in message) == ("evaluation.data", True)
    assert not (place / "hellaswag").exists()


def test_records_of_a_task_that_is_not_ours_are_fetched_once(place: Path) -> None:
    write_records(place / "own" / "words" / "test.jsonl", 6, seed=1)
    write_records(place / "own" / "words" / "train.jsonl", 5, seed=2)
    task = CHOICES | {"dataset_path": "own/words", "dataset_kwargs": {"trust_remote_code": True}}
    tasks = write_tasks(place / "tasks", task)
    evaluation = replace(config(place / "data", "colours"), include_path=str(tasks), shots=(2,))
    assert problems(evaluation) == []
    files = sorted((place / "data" / "colours").iterdir())
    assert [path.name for path in files] == ["test.jsonl", "train.jsonl"]
    before = fingerprint(evaluation, FileDigests(place / "digests"))
    shutil.rmtree(place / "own")
    assert problems(evaluation) == []
    assert fingerprint(evaluation, FileDigests(place / "digests")) == before
    shutil.rmtree(place / "data" / "colours")
    ((path, found),) = problems(evaluation)
    assert path == "evaluation.source"
    assert "task colours needs the hub's own/words, which is neither reachable nor in the Hugging Face cache" in found
