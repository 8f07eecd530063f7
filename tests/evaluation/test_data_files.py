"""Benchmark files: reading, prompts, examples, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.benchmarks import BENCHMARKS
from paribus.evaluation.data_files import read_benchmark, split_file
from paribus.evaluation.items import Item, split_pool
from paribus.evaluation.preflight import check_evaluation, tasks_fingerprint
from paribus.store.files import FileDigests
from support.benchmark_records import RECORDS
from support.real_data import real_data

PIQA = {"goal": "Open a jar", "sol1": "Twist the lid.", "sol2": "Eat the lid.", "label": 0}
BOOLQ = {"passage": "Water is wet.", "question": "is water wet", "label": 1}


def real_file(name: str) -> Path | None:
    """The file of a benchmark, of those that there are."""
    return split_file(real_data().benchmarks, BENCHMARKS[name].directory, BENCHMARKS[name].split)


def write(data: Path, task: str, split: str, records: list[Any]) -> Path:
    path = data / task / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as error:
        read_benchmark(path, BENCHMARKS["piqa"])
    return str(error.value)


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if real_file(name) is not None])
def test_every_real_file_reads_whole(name: str) -> None:
    path = real_file(name)
    assert path is not None
    items = read_benchmark(path, BENCHMARKS[name])
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        assert len(items) == sum(1 for _ in file)
    parts = split_pool(items, None, 5)
    assert len(parts.fewshot) == min(64, len({item.digest() for item in items}) // 4)
    assert parts.chance() == 0 if name == "lambada_openai" else 0.19 < parts.chance() < 0.51


def test_a_broken_record_is_refused_by_file_and_line(tmp_path: Path) -> None:
    broken = PIQA | {"label": 2}
    path = write(tmp_path, "piqa", "validation", [PIQA, broken])
    assert "piqa/validation.jsonl, line 2: field `label` must be an index from 0 to 1, not 2" in refusal(path)
    write(tmp_path, "piqa", "validation", [{"goal": "x"}])
    assert "line 1: field `sol1` is missing; the record has goal" in refusal(path)
    path.write_text('{"goal": ')
    assert "line 1: not JSON" in refusal(path)
    path.write_text("[1]\n")
    assert "a JSON object was expected, not list" in refusal(path)
    path.write_bytes(b'{"goal": "\xff"}\n')
    assert "line 1: invalid UTF-8" in refusal(path)
    path.write_text("\n")
    assert "is empty" in refusal(path)


REFUSED = {
    "an answer outside of the choices": ("hellaswag", {"label": "4"}, "field `label` must be an index from 0 to 3"),
    "an answer counted from zero": ("winogrande", {"answer": "0"}, "field `answer` must be an index from 1 to 2"),
    "a sentence without a blank": ("winogrande", {"sentence": "Ann."}, "field `sentence` must have a blank `_`"),
    "a story without its end": ("storycloze", {"input_sentence_4": " "}, "field `input_sentence_4` must be text"),
    "a passage of one word": ("lambada_openai", {"text": "one"}, "field `text` must be two words"),
    "choices that are no list": ("memotrap_proverb_ending", {"classes": "[' a'"}, "field `classes` must be a list"),
    "one choice": ("memotrap_proverb_ending", {"classes": [" a"]}, "field `classes` must be a list of two or more"),
    "three options": ("race_middle", {"options": ["a", "b", "c"]}, "field `options` must be a list of 4 or more"),
    "a letter that is none": ("race_middle", {"answer": "E"}, "field `answer` must be one of A, B, C, D, not 'E'"),
    "no problems": ("race_high", {"problems": "[]"}, "field `problems` must be a list of one or more problems"),
    "a label that is no number": ("ag_news", {"label": "World"}, "field `label` must be an index from 0 to 3"),
    "no accepted answer": ("triviaqa", {"answer": {"aliases": []}}, "field `aliases` must be a list of one or more"),
    "no answers": ("webqs", {"answers": []}, "field `answers` must be a list of one or more texts, not []"),
    "no span": ("squad", {"answers": {"text": []}}, "field `text` must be a list of one or more texts"),
    "no passages": ("nq_open_book", {"ctxs": []}, "field `ctxs` must be a list of one or more passages"),
    "sentences that are none": ("hotpotqa", {"context": {"title": ["a"], "sentences": ["b"]}}, "field `sentences`"),
    "an answer without content": (
        "drop",
        {"answer": {"number": "", "spans": [], "date": {"day": "", "month": "", "year": ""}}, "validated_answers": {}},
        "field `answer` has no number, spans or date",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_record_that_cannot_be_asked_is_refused_by_file_line_and_field(case: str, tmp_path: Path) -> None:
    name, broken, message = REFUSED[case]
    benchmark = BENCHMARKS[name]
    path = write(tmp_path, benchmark.directory, benchmark.split, [RECORDS[name], RECORDS[name] | broken])
    with pytest.raises(DataError) as error:
        read_benchmark(path, benchmark)
    assert f"{path}, line 2: {message}" in str(error.value)


@pytest.mark.parametrize("name", RECORDS)
def test_a_missing_field_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS[name]
    path = write(tmp_path, benchmark.directory, benchmark.split, [{"other": 1}])
    with pytest.raises(DataError, match=r"line 1: field `\w+` is missing; the record has other"):
        read_benchmark(path, benchmark)


def items(number: int) -> list[Item]:
    return [Item(f"test/{i}", f"question {i % 40}?", ("a", "b"), 0) for i in range(number)]


def test_with_a_training_split_every_item_is_scored_and_copies_are_no_examples() -> None:
    training = [Item("train/1", "question 3?", ("a", "b"), 0), Item("train/2", "other?", ("a", "b"), 1)]
    parts = split_pool(items(60), training, 0)
    assert parts.evaluated == items(60)
    assert [item.id for item in parts.fewshot] == ["train/2"]


def test_preflight_finds_every_problem_at_once(tmp_path: Path) -> None:
    write(tmp_path, "boolq", "validation", [BOOLQ])
    tasks = ("continuation", "bolq", "boolq", "piqa", "openbookqa")
    found = check_evaluation(EvaluationConfig(tasks=tasks, data=str(tmp_path), shots_of={"pika": (1,)}))
    assert sorted({path for path, _ in found}) == ["evaluation.data", "evaluation.shots_of.pika", "evaluation.tasks"]
    found = [problem for problem in found if problem[0] != "evaluation.shots_of.pika"]
    assert "unknown task 'bolq'; nearest: boolq" in found[0][1]
    expected = (
        f"task piqa needs {tmp_path}/piqa/validation.jsonl or the same with .gz or .zst; "
        "evaluation.source=hub fetches it"
    )
    assert found[1][1] == expected


def test_preflight_passes_what_is_there_and_refuses_what_is_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "boolq", "validation", [BOOLQ])
    assert check_evaluation(EvaluationConfig(tasks=("continuation", "boolq"), data=str(tmp_path))) == []
    assert "2 times" in check_evaluation(EvaluationConfig(tasks=("continuation", "continuation")))[0][1]
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert "keep one" in check_evaluation(EvaluationConfig(tasks=("boolq",), data=str(tmp_path)))[0][1]
    told = check_evaluation(EvaluationConfig(tasks=("boolq",)))[0][1]
    hints = "evaluation.source=hub fetches into it, evaluation.tasks=[] scores held-out text alone"
    assert told.endswith(f"it is null; {hints}")
    every = tuple(dict.fromkeys(("boolq", *BENCHMARKS)))
    (first,), (many,) = (check_evaluation(EvaluationConfig(tasks=names)) for names in (("boolq",), every))
    assert many == (first[0], f"{first[1]}; {len(every) - 1} other tasks need it too")
    assert "is not a directory" in check_evaluation(EvaluationConfig(tasks=("boolq",), data=str(tmp_path / "no")))[0][1]


def test_the_fingerprint_follows_the_contents_of_scored_and_training_files(tmp_path: Path) -> None:
    config = EvaluationConfig(tasks=("continuation", "boolq"), data=str(tmp_path / "data"), shots=(0,))
    write(tmp_path / "data", "boolq", "validation", [BOOLQ])
    first = tasks_fingerprint(config, FileDigests(tmp_path / "cache"))
    write(tmp_path / "data", "boolq", "train", [BOOLQ])
    second = tasks_fingerprint(config, FileDigests(tmp_path / "cache"))
    assert list(first) == ["boolq"]
    assert first != second
    (tmp_path / "data").rename(tmp_path / "moved")
    moved = EvaluationConfig(tasks=("continuation", "boolq"), data=str(tmp_path / "moved"), shots=(0,))
    assert tasks_fingerprint(moved, FileDigests(tmp_path / "cache")) == second
    assert tasks_fingerprint(EvaluationConfig(), FileDigests(tmp_path / "cache")) == {}


@pytest.mark.parametrize("split", ["validation", "train"])
def test_a_record_of_another_schema_is_refused_before_anything_runs(tmp_path: Path, split: str) -> None:
    right = {"question": "is it", "passage": "It is.", "label": 1}
    directory = tmp_path / "data/boolq"
    directory.mkdir(parents=True)
    for name in ("validation", "train"):
        records = [right, {"question": "is it", "passage": 3} if name == split else right]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (directory / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    config = EvaluationConfig(tasks=("boolq",), data=str(tmp_path / "data"))
    with pytest.raises(DataError, match=rf"boolq/{split}\.jsonl, line 2: field `passage` must be text, not 3"):
        tasks_fingerprint(config, FileDigests(tmp_path / "cache"))
