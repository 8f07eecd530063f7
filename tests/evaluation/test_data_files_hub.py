"""Benchmarks of the hub: a data set directory of the hub's name, and the cache of a data set without any network."""

import json
import shutil
import subprocess
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
from support.borrowed_tasks import CHOICES, write_records, write_tasks
from support.command_line import command, write_corpus

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


def test_a_training_split_is_fetched_only_for_prompts_with_examples(place: Path) -> None:
    scored = write_scored(place)
    before = scored.read_bytes()
    hub = config(place / "data", "hellaswag")
    for without in (replace(hub, shots_of={"hellaswag": (0,)}), replace(hub, source="files")):
        assert fetch(without) == [] and check_evaluation(without) == []
        assert [path.name for path in scored.parent.iterdir()] == ["validation.jsonl"]
    assert fetch(replace(hub, shots=(0,), shots_of={"hellaswag": (0, 1)})) == [None]
    assert scored.read_bytes() == before
    assert len(read_benchmark(scored.with_name("train.jsonl"), HELLASWAG)) == 2
    assert fetch(hub) == []


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


def test_a_sweep_without_network_goes_on_and_says_once_that_it_lacks_a_training_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    write_corpus(tmp_path)
    write_split(tmp_path / "benchmarks" / "boolq", "validation", "boolq", "question", 40)
    sweep = ("run", "-m", "scale=tiny", "corpus=files", "corpus.paths=[texts/*.jsonl]", "corpus.near_duplicate=null")
    sweep += ("evaluation.tasks=[boolq]", "evaluation.data=benchmarks", "evaluation.source=hub", "until=tasks")
    sweep += ("evaluation.shots=[0,2]", "seed=1,2", "tracking=none")
    first, again = (subprocess.check_output(command(sweep), cwd=tmp_path, text=True) for _ in range(2))
    assert "2 of 2 runs done" in first
    assert first.count("benchmarks/boolq/train.jsonl is not there and cannot be fetched") == 1
    assert "2 of 2 runs done up to tasks already" in again and "cannot be fetched" not in again


def test_a_training_split_of_gigabytes_is_read_as_far_as_examples_need_it(place: Path) -> None:
    amazon = place / "fancyzhx" / "amazon_polarity"
    write_split(amazon, "test", "amazon", "content", 30)
    train = write_split(amazon, "train", "amazon", "content", MIXED_RECORDS + 10)
    assert check_evaluation(config(place / "data", "amazon")) == []
    test_file, train_file = (place / "data" / "amazon" / f"{split}.jsonl" for split in ("test", "train"))
    assert len(read_benchmark(test_file, BENCHMARKS["amazon"])) == 30
    assert train_file.read_text().splitlines() == train.read_text().splitlines()[:MIXED_RECORDS]
    assert not list((place / "cache").rglob("*.arrow"))


def test_data_sets_that_cannot_be_fetched_are_refused_before_anything_runs(place: Path) -> None:
    problems = check_evaluation(config(place / "data", "winogrande", "memotrap_proverb_ending", "hellaswag"))
    assert [path for path, _ in problems] == ["evaluation.source", "evaluation.source"]
    assert "task winogrande needs the hub's allenai/winogrande (winogrande_xl)" in problems[0][1]
    assert "neither reachable nor in the Hugging Face cache" in problems[0][1]
    assert "task memotrap_proverb_ending is on no hub data set known here" in problems[1][1]
    (place / "Rowan" / "hellaswag" / "validation.jsonl").unlink()
    shutil.rmtree(place / "data")
    ((_, message),) = check_evaluation(config(place / "data", "hellaswag"))
    assert "has no split validation" in message
    assert not (place / "data").exists()


def test_records_of_a_task_of_the_users_are_fetched_once(place: Path) -> None:
    write_records(place / "own" / "words" / "test.jsonl", 6, seed=1)
    write_records(place / "own" / "words" / "train.jsonl", 5, seed=2)
    task = CHOICES | {"dataset_path": "own/words", "dataset_kwargs": {"trust_remote_code": True}}
    tasks = write_tasks(place / "tasks", task)
    evaluation = replace(config(place / "data", "colours"), include_path=str(tasks), shots=(2,))
    assert check_evaluation(evaluation) == []
    files = sorted((place / "data" / "colours").iterdir())
    assert [path.name for path in files] == ["test.jsonl", "train.jsonl"]
    files[1].unlink()
    assert fetch(evaluation) == [None] and files[1].is_file()
    shutil.rmtree(place / "own")
    assert check_evaluation(evaluation) == []
    shutil.rmtree(place / "data" / "colours")
    ((path, message),) = check_evaluation(evaluation)
    assert path == "evaluation.source"
    assert "task colours needs the hub's own/words, which is neither reachable nor in the Hugging Face cache" in message
