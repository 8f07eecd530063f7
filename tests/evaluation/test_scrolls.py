"""Records of SCROLLS and QMSum as examples, and what is refused of files and configuration."""

from pathlib import Path
from typing import Any

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.evaluation import NoFinetuning, ScrollsFinetuning
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.scrolls import (
    Question,
    TaskData,
    check_scrolls,
    check_scrolls_names,
    read_task,
)
from paribus.evaluation.tune import Rows, rouge_scores
from paribus.tokenization import Tokenizer
from support.finetunings import finetuning_config, run_data, scrolls_record, write_lines

PREDICTIONS = ["exact match example", "hello there", "general kenobi"]
REFERENCES = [["exact match example"], ["hello", "hi there"], ["commander kenobi"]]


def data(root: Path, task: str, train: list[Any], validation: list[Any], **fields: Any) -> TaskData:
    for split, records in (("train", train), ("validation", validation)):
        write_lines(root / "data" / task / f"{split}.jsonl", records)
    run_data(root, finetuning_config(root, tasks=(task,), **fields))
    return read_task(root / "finetuning_data" / task)


def test_lines_of_one_id_are_accepted_answers_when_scored_and_examples_when_trained_on(tmp_path: Path) -> None:
    lines = [scrolls_record("a", "Who?", "Ann\n\nran.", "Ann"), scrolls_record("a", "Who?", "Ann\n\nran.", "She")]
    other = [scrolls_record("b", "Who?", "Bob ran.", "Bob"), scrolls_record("b", "Who?", "Bob ran.", "He")]
    found = data(tmp_path, "narrative_qa", other, lines)
    (scored,) = found.scored
    assert (scored.question, scored.answers) == ("Who?", ("Ann", "She"))
    assert found.documents == ["Ann\n\nran.", "Bob ran."]
    assert [(question.document, question.answers) for question in found.train] == [(1, ("Bob",)), (1, ("He",))]


def test_what_is_scored_is_not_trained_on(tmp_path: Path) -> None:
    record, other = (scrolls_record(name, "Who?", f"{name} ran.", name) for name in ("Ann", "Bob"))
    found = data(tmp_path, "qasper", [record, other], [record])
    assert [question.answers for question in found.train] == [("Bob",)]
    again = finetuning_config(tmp_path, limit=1)
    write_lines(tmp_path / "data/qasper/train.jsonl", [record])
    (tmp_path / "finetuning_data").rename(tmp_path / "before")
    with pytest.raises(DataError, match=r"train\.jsonl: every example of it is scored too"):
        run_data(tmp_path, again)


def test_real_meetings_become_questions_about_their_transcripts(shared_data: Path, tmp_path: Path) -> None:
    import gzip

    with gzip.open(shared_data / "benchmarks/qmsum/test.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = list(file)
    for split, part in (("train", lines[:3]), ("validation", lines[3:5])):
        path = tmp_path / "data/qmsum" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(part), encoding="utf-8")
    run_data(tmp_path, finetuning_config(tmp_path, tasks=("qmsum",), answer_characters=400))
    found = read_task(tmp_path / "finetuning_data/qmsum")
    assert (len(found.documents), len(found.train), len(found.scored)) == (5, 25, 12)
    assert max(len(question.answers[0]) for question in found.train) == 400
    assert min(map(len, found.documents)) > 20_000


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "a", "input": "Who?\n\nAnn."}, "line 2: field `output` is missing; the record has id, input"),
        ({"id": "a", "input": "Who? Ann.", "output": "A"}, "line 2: field `input` must be a question, an empty line"),
        (scrolls_record("same", "Why?", "Ann ran.", "Ann"), "id 'same' names two questions: 'Who?' and 'Why?'"),
    ],
)
def test_a_record_that_is_none_is_named_by_file_and_line(tmp_path: Path, record: Any, message: str) -> None:
    good = scrolls_record("same", "Who?", "Ann ran.", "Ann")
    with pytest.raises(DataError) as raised:
        data(tmp_path, "qasper", [good], [good, record])
    assert "qasper/validation.jsonl" in str(raised.value)
    assert message in str(raised.value)


def test_names_and_missing_files_are_refused_before_anything_runs(tmp_path: Path) -> None:
    assert check_scrolls(NoFinetuning()) == []
    config = ScrollsFinetuning(tasks=("qmsun", "qasper", "qasper"), data=str(tmp_path))
    assert check_scrolls_names(config) == [
        (
            "finetuning.tasks",
            "'qmsun' is unknown; did you mean 'qmsum'? known: narrative_qa, qasper, contract_nli, qmsum, gov_report",
        ),
        ("finetuning.tasks", "names qasper 2 times"),
    ]
    found = check_scrolls(ScrollsFinetuning(tasks=("qasper",), data=str(tmp_path)))
    assert [path for path, _ in found] == ["evaluation.data"] * 2
    assert f"fine-tuning on qasper needs {tmp_path}/qasper/train.jsonl or the same with .gz" in found[0][1]
    (without,) = set(check_scrolls(ScrollsFinetuning(tasks=("qasper",))))
    assert without[0] == "evaluation.data" and without[1].endswith("it is null")


def test_a_document_loses_its_end_and_a_prompt_leaves_room_for_the_longest_answer() -> None:
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
    found = rouge_scores(PREDICTIONS, REFERENCES)
    mean = {name: 100 * sum(scores[name] for scores in found) / 3 for name in found[0]}
    assert mean == pytest.approx(
        {"rouge1": 72.2222, "rouge2": 33.3333, "rougeL": 72.2222, "rouge_geometric_mean": 55.8136}, abs=1e-4
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokenizer=bytes", "finetuning.answer_characters=33"], "take more than half of model.context_length=64"),
        (["finetuning.answer_characters=129"], r"129 characters \(4 to a token\) .*; use 128 or less"),
        (["finetuning.tasks=[]"], "finetuning.tasks"),
        (["finetuning.learning_rate=0"], "finetuning.learning_rate"),
    ],
)
def test_what_cannot_work_is_refused_by_its_path(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        compose_command(parse(["scale=tiny", "finetuning=scrolls", "finetuning.answer_characters=32", *arguments]))


def test_an_encoder_decoder_is_refused(tmp_path: Path) -> None:
    pairs = ["corpus=parallel", "corpus.source=[a]", "corpus.target=[b]", "model=wmt_tiny", "packing=pair"]
    rest = ["evaluation=heldout", "budget=equal_steps", "finetuning=scrolls"]
    with pytest.raises(ConfigurationError, match=r"finetuning\.kind: scrolls fine-tunes language models"):
        compose_command(parse(["scale=tiny", *pairs, *rest]))
