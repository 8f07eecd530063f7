"""Records of SCROLLS and QMSum as examples, and what is refused of files."""

from pathlib import Path
from typing import Any

import pytest

from paribus.errors import DataError
from paribus.evaluation.scrolls import Question, TaskData, read_task
from paribus.evaluation.tune import Rows, rouge_scores
from paribus.tokenization import Tokenizer
from support.corpora import write_jsonl
from support.finetunings import finetuning_config, run_data, scrolls_record


def data(root: Path, task: str, train: list[Any], validation: list[Any], **fields: Any) -> TaskData:
    for split, records in (("train", train), ("validation", validation)):
        write_jsonl(root / "data" / task / f"{split}.jsonl", records)
    run_data(root, finetuning_config(root, tasks=(task,), **fields))
    return read_task(root / "finetuning_data" / task)


def test_lines_of_one_id_are_accepted_answers_when_scored_and_examples_when_trained_on(tmp_path: Path) -> None:
    scored = [scrolls_record("a", "Who?", "Ann\n\nran.", answer) for answer in ("Ann", "She")]
    train = [scrolls_record("b", "Who?", "Bob ran.", answer) for answer in ("Bob", "He")]
    task = data(tmp_path, "narrative_qa", train, scored)
    (question,) = task.scored
    assert (question.question, question.answers) == ("Who?", ("Ann", "She"))
    assert task.documents == ["Ann\n\nran.", "Bob ran."]
    assert [(question.document, question.answers) for question in task.train] == [(1, ("Bob",)), (1, ("He",))]


def test_scored_examples_are_not_trained_on(tmp_path: Path) -> None:
    record, other = (scrolls_record(name, "Who?", f"{name} ran.", name) for name in ("Ann", "Bob"))
    task = data(tmp_path / "first", "qasper", [record, other], [record])
    assert [question.answers for question in task.train] == [("Bob",)]
    with pytest.raises(DataError, match=r"train\.jsonl: every example of it is scored too"):
        data(tmp_path / "second", "qasper", [record], [record, other], limit=1)


def test_invalid_records_are_refused_by_file_and_line(tmp_path: Path) -> None:
    good = scrolls_record("same", "Who?", "Ann ran.", "Ann")
    cases = [
        ({"id": "a", "input": "Who?\n\nAnn."}, "line 2: field `output` is missing; the record has id, input"),
        ({"id": "a", "input": "Who? Ann.", "output": "A"}, "line 2: field `input` must be a question, an empty line"),
        (scrolls_record("same", "Why?", "Ann ran.", "Ann"), "id 'same' names two questions: 'Who?' and 'Why?'"),
    ]
    for number, (record, message) in enumerate(cases):
        with pytest.raises(DataError) as error:
            data(tmp_path / str(number), "qasper", [good], [good, record])
        assert "qasper/validation.jsonl" in str(error.value) and message in str(error.value)


def test_a_long_document_loses_its_end_and_leaves_room_for_the_longest_answer() -> None:
    tokenizer = Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))
    train = [Question("a", "Who?", 0, ("Ann",), ""), Question("b", "Why?", 1, ("x" * 99,), "")]
    rows = Rows(tokenizer, TaskData(["ab", "é" * 60], train, []), 64)
    assert rows.answer_tokens == 32
    assert bytes(rows.answer(train[1]).tolist()) == b" " + b"x" * 30
    short, long = (rows.prompt(question) for question in train)
    assert bytes(short.ids.tolist()) == b"Who?\n\nab\n\nAnswer:"
    assert (short.cut, short.document_bytes) == (False, 2)
    assert bytes(long.ids.tolist()) == b"Why?\n\n" + ("é" * 60).encode()[:17] + b"\n\nAnswer:"
    assert (long.cut, long.document_bytes, len(long.ids)) == (True, 17, 32)


def test_the_examples_of_scrolls_own_script_have_the_scores_it_prints() -> None:
    references = [["exact match example"], ["hello", "hi there"], ["commander kenobi"]]
    scores = rouge_scores(["exact match example", "hello there", "general kenobi"], references)
    means = {name: 100 * sum(values[name] for values in scores) / 3 for name in scores[0]}
    expected = {"rouge1": 72.2222, "rouge2": 33.3333, "rougeL": 72.2222, "rouge_geometric_mean": 55.8136}
    assert means == pytest.approx(expected, abs=1e-4)
