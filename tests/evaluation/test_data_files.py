"""Files of benchmarks, sets of texts and translations: reading, fingerprints, and what is refused."""

import gzip
import json
from dataclasses import replace
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
from paribus.evaluation.preflight import check_evaluation, tasks_fingerprint
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
    ("winogrande", {"answer": "0"}, "field `answer` must be an index from 1 to 2"),
    ("winogrande", {"sentence": "Ann."}, "field `sentence` must have a blank `_`"),
    ("storycloze", {"input_sentence_4": " "}, "field `input_sentence_4` must be text"),
    ("lambada_openai", {"text": "one"}, "field `text` must be two words"),
    ("memotrap_proverb_ending", {"classes": "[' a'"}, "field `classes` must be a list"),
    ("memotrap_proverb_ending", {"classes": [" a"]}, "field `classes` must be a list of two or more"),
    ("race_middle", {"options": ["a", "b", "c"]}, "field `options` must be a list of 4 or more"),
    ("race_middle", {"answer": "E"}, "field `answer` must be one of A, B, C, D, not 'E'"),
    ("race_high", {"problems": "[]"}, "field `problems` must be a list of one or more problems"),
    ("ag_news", {"label": "World"}, "field `label` must be an index from 0 to 3"),
    ("triviaqa", {"answer": {"aliases": []}}, "field `aliases` must be a list of one or more"),
    ("webqs", {"answers": []}, "field `answers` must be a list of one or more texts, not []"),
    ("squad", {"answers": {"text": []}}, "field `text` must be a list of one or more texts"),
    ("nq_open_book", {"ctxs": []}, "field `ctxs` must be a list of one or more passages"),
    ("hotpotqa", {"context": {"title": ["a"], "sentences": ["b"]}}, "field `sentences`"),
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


def test_preflight_reports_every_problem_at_once(tmp_path: Path) -> None:
    write(tmp_path, "boolq", "validation", [BOOLQ])
    tasks = ("continuation", "bolq", "boolq", "piqa", "openbookqa", "continuation")
    problems = check_evaluation(EvaluationConfig(tasks=tasks, data=str(tmp_path), shots_of={"pika": (1,)}))
    assert {path for path, _ in problems} == {"evaluation.data", "evaluation.shots_of.pika", "evaluation.tasks"}
    messages = "\n".join(message for _, message in problems)
    assert "2 times" in messages
    assert "unknown task 'bolq'; nearest: boolq" in messages
    file = f"{tmp_path}/piqa/validation.jsonl or the same with .gz or .zst"
    assert f"task piqa needs {file}; evaluation.source=hub fetches it" in messages


def test_preflight_refuses_two_files_of_a_task_and_a_missing_directory(tmp_path: Path) -> None:
    path = write(tmp_path, "boolq", "validation", [BOOLQ])
    evaluation = EvaluationConfig(tasks=("continuation", "boolq"), data=str(tmp_path))
    assert check_evaluation(evaluation) == []
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert "keep one" in check_evaluation(evaluation)[0][1]
    assert "is not a directory" in check_evaluation(replace(evaluation, data=str(tmp_path / "no")))[0][1]
    ((_, message),) = check_evaluation(EvaluationConfig(tasks=("boolq",)))
    hints = "evaluation.source=hub fetches into it, evaluation.tasks=[] scores held-out text alone"
    assert message.endswith(f"it is null; {hints}")
    ((_, of_all),) = check_evaluation(EvaluationConfig(tasks=tuple(dict.fromkeys(("boolq", *BENCHMARKS)))))
    assert of_all == f"{message}; {len(BENCHMARKS) - 1} other tasks need it too"


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


INVALID_TEXTS = [
    ([TEXTS[0], {"body": "x"}], "line 2: field `text` is missing; the record has body"),
    ([{"text": 3}], "line 1: field `text` must be text, not 3"),
    ([{"text": ""}], "line 1: the text is empty"),
    ([{"text": "\ud800"}], "line 1: the text, id or group has half a surrogate pair"),
    ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "line 2: the id 'a' occurred before"),
    ([{"id": "a", "text": "x"}, {"text": "y"}], "line 2: field `id` is missing"),
    ([], "is empty; a set of texts needs its lines there, each a JSON object"),
]


def test_texts_have_a_fingerprint_and_invalid_ones_are_refused_by_line(tmp_path: Path) -> None:
    evaluation = EvaluationConfig(tasks=(), texts=("books",), data=str(tmp_path))
    write(tmp_path, "books", "test", TEXTS)
    assert list(tasks_fingerprint(evaluation, FileDigests(tmp_path / "cache"))) == ["texts"]
    for records, message in INVALID_TEXTS:
        path = write(tmp_path, "books", "test", records)
        with pytest.raises(DataError) as error:
            list(read_texts(path))
        assert str(path) in str(error.value) and message in str(error.value)
        with pytest.raises(DataError, match=r"books/test\.jsonl"):
            tasks_fingerprint(evaluation, FileDigests(tmp_path / "cache"))


def test_missing_sets_of_texts_and_names_that_collide_are_refused_at_once(tmp_path: Path) -> None:
    names = ("books", "boolq", "../x", "books")
    problems = check_evaluation(EvaluationConfig(tasks=(), texts=names, data=str(tmp_path)))
    file = f"{tmp_path}/books/test.jsonl or the same with .gz or .zst"
    for (path, message), expected in zip(
        problems,
        [
            ("evaluation.texts", "'boolq' is the name of a task"),
            ("evaluation.texts", "'../x' must be letters"),
            ("evaluation.texts", "names books 2 times"),
            ("evaluation.data", f"text set books needs {file}; or leave it out of evaluation.texts"),
        ],
        strict=True,
    ):
        assert path == expected[0] and expected[1] in message


def test_pairs_are_read_in_the_direction_of_the_name(tmp_path: Path) -> None:
    path = write(tmp_path, "wmt14", "test", [PAIR, {"translation": PAIR}])
    for name, sides in {"wmt14_en_de": ("a dog .", "ein hund ."), "wmt14_de_en": ("ein hund .", "a dog .")}.items():
        pairs = read_translations(path, TRANSLATIONS[name])
        assert pairs == [TextPair("test/1", *sides), TextPair("test/2", *sides)]


def test_invalid_pairs_are_refused_by_file_line_and_field(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ({"en": "a", "fr": "b"}, "field `de` is missing; the record has en, fr"),
        ({"en": "a", "de": " "}, "field `de` must be text"),
        ({"translation": ["a", "b"]}, "field `translation` must hold the texts en and de, not \\["),
    ]
    for record, message in cases:
        path = write(tmp_path, "wmt14", "test", [PAIR, record])
        with pytest.raises(DataError, match=rf"test\.jsonl, line 2: {message}"):
            read_translations(path, TRANSLATIONS["wmt14_en_de"])
