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
from support.borrowed_tasks import CHOICES, write_records, write_tasks
from support.experiments import composition_of

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
    assert check_evaluation(hub) == []
    files = {path.name: path for path in (place / "data" / "hellaswag").iterdir()}
    assert sorted(files) == ["train.jsonl", "validation.jsonl"]
    for name, path in files.items():
        assert read_benchmark(path, HELLASWAG) == read_benchmark(place / "Rowan" / "hellaswag" / name, HELLASWAG)
    hub = replace(hub, shots=(0,))
    before = tasks_fingerprint(hub, FileDigests(place / "digests"))
    shutil.rmtree(place / "Rowan")
    assert check_evaluation(hub) == []
    assert tasks_fingerprint(hub, FileDigests(place / "digests")) == before


def scored_alone(place: Path) -> Path:
    """HellaSwag's scored file, in a directory without examples."""
    scored = place / "data" / "hellaswag" / "validation.jsonl"
    scored.parent.mkdir(parents=True)
    scored.write_text("".join(json.dumps(RECORDS["hellaswag"] | {"ctx_b": f"own {i}"}) + "\n" for i in range(8)))
    return scored


def fetched(evaluation: EvaluationConfig) -> list[str | None]:
    """What is said of each file of examples that is asked for, with a memory in the working directory."""
    return [fetch_missing(each, Path("memory")) for each in missing_examples(evaluation)]


def test_a_training_split_is_fetched_where_the_scored_one_is_there_and_prompts_have_examples(place: Path) -> None:
    scored = scored_alone(place)
    before = scored.read_bytes()
    hub = config(place / "data", "hellaswag")
    for without in (
        replace(hub, shots=(0,)),
        replace(hub, shots_of={"hellaswag": (0,)}),
        replace(hub, source="files"),
    ):
        assert fetched(without) == [] and check_evaluation(without) == []
        assert [path.name for path in scored.parent.iterdir()] == ["validation.jsonl"]
    assert fetched(replace(hub, shots=(0,), shots_of={"hellaswag": (0, 1)})) == [None]
    assert scored.read_bytes() == before
    assert len(read_benchmark(scored.with_name("train.jsonl"), HELLASWAG)) == 2
    assert fetched(hub) == []


def test_examples_that_cannot_be_had_are_split_off_and_said_to_be(place: Path) -> None:
    scored = scored_alone(place)
    shutil.rmtree(place / "Rowan")
    hub = replace(config(place / "data", "hellaswag"), shots=(2,))
    (line,) = fetched(hub)
    assert line is not None and "\n" not in line
    assert f"{scored.with_name('train.jsonl')} is not there and cannot be fetched" in line
    assert "examples of task hellaswag are split off its scored file: task hellaswag needs the hub's Rowan" in line
    assert check_evaluation(hub) == []
    found = tasks_fingerprint(hub, FileDigests(place / "digests"))["hellaswag"]
    assert isinstance(found, dict) and found["fewshot"] is None


def test_the_tasks_of_in_context_pretraining_have_examples_of_training_data() -> None:
    for name in ("table_1", "table_2", "figure_4", "figure_6"):
        evaluation = composition_of(f"experiment=in_context/{name}").jobs[0].config.evaluation
        for task in evaluation.tasks:
            hub = BENCHMARKS[task].hub
            assert hub is not None and hub.train, task


def test_a_training_split_of_gigabytes_is_read_as_far_as_examples_need_it(place: Path) -> None:
    amazon = place / "fancyzhx" / "amazon_polarity"
    amazon.mkdir(parents=True)
    for split, number in (("test", 30), ("train", MIXED_RECORDS + 10)):
        records = [RECORDS["amazon"] | {"content": f"{split} {i}", "label": i % 2} for i in range(number)]
        (amazon / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert check_evaluation(config(place / "data", "amazon")) == []
    files = {path.name: path for path in (place / "data" / "amazon").iterdir()}
    assert sorted(files) == ["test.jsonl", "train.jsonl"]
    assert len(read_benchmark(files["test.jsonl"], BENCHMARKS["amazon"])) == 30
    assert (
        files["train.jsonl"].read_text().splitlines()
        == (amazon / "train.jsonl").read_text().splitlines()[:MIXED_RECORDS]
    )
    assert not list((place / "cache").rglob("*.arrow"))


def test_a_cached_data_set_needs_no_network(place: Path) -> None:
    datasets.load_dataset("Rowan/hellaswag")
    (place / "cache" / "hellaswag").rename(place / "cache" / "Rowan___hellaswag")
    shutil.rmtree(place / "Rowan")
    assert check_evaluation(config(place / "data", "hellaswag")) == []
    assert len(read_benchmark(place / "data" / "hellaswag" / "validation.jsonl", HELLASWAG)) == 3


def test_what_cannot_be_fetched_is_named_before_anything_runs(place: Path) -> None:
    found = check_evaluation(config(place / "data", "winogrande", "memotrap_proverb_ending", "hellaswag"))
    assert [path for path, _ in found] == ["evaluation.source", "evaluation.source"]
    assert "task winogrande needs the hub's allenai/winogrande (winogrande_xl)" in found[0][1]
    assert "neither reachable nor in the Hugging Face cache" in found[0][1]
    assert "task memotrap_proverb_ending is on no hub data set known here" in found[1][1]
    (place / "Rowan" / "hellaswag" / "validation.jsonl").unlink()
    shutil.rmtree(place / "data")
    ((_, message),) = check_evaluation(config(place / "data", "hellaswag"))
    assert "has no split validation" in message
    assert not (place / "data").exists()


def test_records_of_a_task_that_is_not_ours_are_fetched_once(place: Path) -> None:
    write_records(place / "own" / "words" / "test.jsonl", 6, seed=1)
    write_records(place / "own" / "words" / "train.jsonl", 5, seed=2)
    task = CHOICES | {"dataset_path": "own/words", "dataset_kwargs": {"trust_remote_code": True}}
    tasks = write_tasks(place / "tasks", task)
    evaluation = replace(config(place / "data", "colours"), include_path=str(tasks), shots=(2,))
    assert check_evaluation(evaluation) == []
    files = sorted((place / "data" / "colours").iterdir())
    assert [path.name for path in files] == ["test.jsonl", "train.jsonl"]
    before = tasks_fingerprint(evaluation, FileDigests(place / "digests"))
    files[1].unlink()
    without = replace(evaluation, shots=(0,))
    assert check_evaluation(without) == [] and fetched(without) == []
    assert not files[1].is_file()
    assert fetched(evaluation) == [None] and files[1].is_file()
    shutil.rmtree(place / "own")
    assert check_evaluation(evaluation) == []
    assert tasks_fingerprint(evaluation, FileDigests(place / "digests")) == before
    shutil.rmtree(place / "data" / "colours")
    ((path, found),) = check_evaluation(evaluation)
    assert path == "evaluation.source"
    assert "task colours needs the hub's own/words, which is neither reachable nor in the Hugging Face cache" in found
