"""Files of benchmarks, sets of texts and translations: reading, fingerprints, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.benchmarks import BENCHMARKS
from paribus.evaluation.data_files import TRANSLATIONS, read_benchmark, read_texts, read_translations, split_file
from paribus.evaluation.heldout import TextPair
from paribus.evaluation.items import Item, split_pool
from paribus.evaluation.preflight import tasks_fingerprint
from paribus.store.files import FileDigests
from support.benchmark_records import RECORDS
from support.real_data import real_data

BOOLQ = {"passage": "Water is wet.", "question": "is water wet", "label": 1}


def real_file(name: str) -> Path | None:
    """The file of a benchmark, of those that there are."""
    return split_file(real_data().benchmarks, BENCHMARKS[name].directory, BENCHMARKS[name].split)


def write(data: Path, task: str, split: str, records: list[Any]) -> Path:
    path = data / task / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if real_file(name) is not None])
def test_real_benchmark_files_are_read_whole(name: str) -> None:
    path = real_file(name)
    assert path is not None
    items = read_benchmark(path, BENCHMARKS[name])
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        assert len(items) == sum(1 for _ in file)
    parts = split_pool(items, None, 5)
    assert len(parts.fewshot) == min(64, len({item.digest() for item in items}) // 4)
    assert parts.chance() == 0 if name == "lambada_openai" else 0.19 < parts.chance() < 0.51


def test_lines_that_are_no_records_are_refused_by_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, "piqa", "validation", [])
    for content, message in {
        b'{"goal": "x"}\n': "piqa/validation.jsonl, line 1: field `sol1` is missing; the record has goal",
        b'{"goal": ': "line 1: not JSON",
        b"[1]\n": "a JSON object was expected, not list",
        b'{"goal": "\xff"}\n': "line 1: invalid UTF-8",
        b"\n": "is empty",
    }.items():
        path.write_bytes(content)
        with pytest.raises(DataError) as error:
            read_benchmark(path, BENCHMARKS["piqa"])
        assert message in str(error.value)


NO_DATE = {"day": "", "month": "", "year": ""}
INVALID_RECORDS = [
    ("hellaswag", {"label": "4"}, "field `label` must be an index from 0 to 3"),
    ("winogrande", {"sentence": "Ann."}, "field `sentence` must have a blank `_`"),
    ("lambada_openai", {"text": "one"}, "field `text` must be two words"),
    ("memotrap_proverb_ending", {"classes": [" a"]}, "field `classes` must be a list of two or more"),
    ("race_middle", {"answer": "E"}, "field `answer` must be one of A, B, C, D, not 'E'"),
    ("triviaqa", {"answer": {"aliases": []}}, "field `aliases` must be a list of one or more"),
    ("nq_open_book", {"ctxs": []}, "field `ctxs` must be a list of one or more passages"),
    (
        "drop",
        {"answer": {"number": "", "spans": [], "date": NO_DATE}, "validated_answers": {}},
        "field `answer` has no number, spans or date",
    ),
]


def test_invalid_records_are_refused_by_file_line_and_field(tmp_path: Path) -> None:
    cases = [(name, [RECORDS[name], RECORDS[name] | fields], message) for name, fields, message in INVALID_RECORDS]
    cases += [(name, [record, {"other": 1}], "field `") for name, record in RECORDS.items()]
    for name, records, message in cases:
        benchmark = BENCHMARKS[name]
        path = write(tmp_path, benchmark.directory, benchmark.split, records)
        with pytest.raises(DataError) as error:
            read_benchmark(path, benchmark)
        assert f"{path}, line 2: {message}" in str(error.value)


def test_with_a_training_split_every_item_is_scored_and_copies_are_no_examples() -> None:
    items = [Item(f"test/{i}", f"question {i % 40}?", ("a", "b"), 0) for i in range(60)]
    training = [Item("train/1", "question 3?", ("a", "b"), 0), Item("train/2", "other?", ("a", "b"), 1)]
    parts = split_pool(items, training, 0)
    assert parts.evaluated == items
    assert [item.id for item in parts.fewshot] == ["train/2"]


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
    for name in ("validation", "train"):
        write(tmp_path, "boolq", name, [BOOLQ, BOOLQ | {"passage": 3} if name == split else BOOLQ])
    with pytest.raises(DataError, match=rf"boolq/{split}\.jsonl, line 2: field `passage` must be text, not 3"):
        tasks_fingerprint(EvaluationConfig(tasks=("boolq",), data=str(tmp_path)), FileDigests(tmp_path / "cache"))


TEXTS = [{"text": "All else being equal."}, {"text": "Zürich\n"}]
PAIR = {"en": "a dog .", "de": "ein hund ."}


def test_texts_are_read_plain_and_compressed_and_named_by_their_line(tmp_path: Path) -> None:
    data = "".join(json.dumps(record) + "\n" for record in TEXTS).encode()
    for name, content in {"": data, ".gz": gzip.compress(data), ".zst": zstandard.compress(data)}.items():
        path = tmp_path / f"test.jsonl{name}"
        path.write_bytes(content)
        assert list(read_texts(path)) == [("test/1", "All else being equal."), ("test/2", "Zürich\n")], name


def test_pairs_are_read_in_the_direction_of_the_name(tmp_path: Path) -> None:
    path = write(tmp_path, "wmt14", "test", [PAIR, {"translation": PAIR}])
    for name, sides in {"wmt14_en_de": ("a dog .", "ein hund ."), "wmt14_de_en": ("ein hund .", "a dog .")}.items():
        pairs = read_translations(path, TRANSLATIONS[name])
        assert pairs == [TextPair("test/1", *sides), TextPair("test/2", *sides)]
