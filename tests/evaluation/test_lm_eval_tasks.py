"""Tasks of a user's directory and of lm-eval: what is found, refused, pinned and stored."""

import json
from pathlib import Path
from typing import Any

import datasets
import lm_eval.tasks
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml  # type: ignore[import-untyped]
from lm_eval import evaluator

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.items import read_records
from paribus.evaluation.preflight import check_evaluation, tasks_fingerprint
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.store.files import FileDigests
from paribus.tokenization import Tokenizer
from support.borrowed_tasks import CHOICES, WRITTEN, write_records, write_tasks
from support.evaluations import WORDS, stage_context, write_checkpoints, write_drawn_corpus


def config(folder: Path | None, *tasks: str, **fields: Any) -> EvaluationConfig:
    path = None if folder is None else str(folder)
    return EvaluationConfig(tasks=tasks, include_path=path, heldout_documents=10, **fields)


def stored(root: Path, evaluation: EvaluationConfig) -> Path:
    write_drawn_corpus(root)
    build_tasks(stage_context(root, evaluation, "tasks", "corpus"))
    return root / "tasks"


def test_a_task_of_a_directory_is_stored_as_ours_are(tmp_path: Path) -> None:
    evaluation = config(write_tasks(tmp_path / "own", CHOICES, WRITTEN), "colours", "follows", shots=(0, 1))
    assert check_evaluation(evaluation) == []
    tasks = stored(tmp_path, evaluation)
    (first, *_), (shown, *_) = read_records(tasks / "colours.jsonl"), read_records(tasks / "colours.fewshot.jsonl")
    record = json.loads((tmp_path / "own" / "colours.jsonl").read_text().splitlines()[0])
    assert first["query"] == f"Words: {record['question']}\nNext:"
    assert first["choices"] == [record["a"], record["b"], record["c"]]
    assert first["choices"][first["gold"]] == record[record["right"]]
    assert shown["id"] == "train/1"
    about = yaml.safe_load((tasks / "colours.yaml").read_text())
    assert about["description"] == CHOICES["description"]
    assert [metric["metric"] for metric in about["metric_list"]] == ["acc", "acc_norm"]
    (written, *_) = read_records(tasks / "follows.jsonl")
    assert written["answers"] == [[record["a"]], [record["b"]]]
    assert [record["query"] for record in read_records(tasks / "follows.fewshot.jsonl")] == ["order token"]


def test_without_a_file_of_examples_some_items_are_split_off(tmp_path: Path) -> None:
    own = CHOICES | {"fewshot_split": "test"}
    tasks = stored(tmp_path, config(write_tasks(tmp_path / "own", own), "colours", shots=(2,)))
    scored, shown = (read_records(tasks / f"colours{part}.jsonl") for part in ("", ".fewshot"))
    assert (len(scored), len(shown)) == (18, 6)
    assert not {record["query"] for record in scored} & {record["query"] for record in shown}


def test_the_identity_is_what_yaml_python_and_records_say(tmp_path: Path) -> None:
    task = write_tasks(tmp_path / "own", CHOICES) / "colours.yaml"
    records, code = task.with_name("colours.jsonl"), task.with_name("helpers.py")
    evaluation, digests = config(task.parent, "colours", shots=(2,)), FileDigests(tmp_path / "digests")

    def identity() -> str:
        return json.dumps(tasks_fingerprint(evaluation, digests))

    found = [identity()]
    task.write_text(task.read_text().replace("Next:", "Then:"))
    found.append(identity())
    write_records(records, 25, seed=1)
    found.append(identity())
    task.write_text(task.read_text() + "process_docs: !function helpers.longer\n")
    code.write_text("def longer(docs):\n    return docs\n")
    found.append(identity())
    code.write_text("def longer(docs):\n    return docs.select(range(3))\n")
    found.append(identity())
    assert len(set(found)) == len(found)
    assert len(read_records(stored(tmp_path, evaluation) / "colours.jsonl")) == 3
    moved = task.parent.rename(tmp_path / "moved")
    assert json.dumps(tasks_fingerprint(config(moved, "colours", shots=(2,)), digests)) == found[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output_type": "loglikelihood_rolling"}, "name its texts in evaluation.texts"),
        ({"metric_list": [{"metric": "mcc"}]}, "is measured by mcc alone"),
        ({"repeats": 4}, "asks 4 times"),
        ({"test_split": "test[:5]"}, "no name of a file"),
        ({"doc_to_target": None}, "lacks doc_to_target, of which its items are made"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_runs(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    own = write_tasks(tmp_path / "own", CHOICES | change)
    ((path, found),) = check_evaluation(config(own, "colours", shots=(0,)))
    assert path == "evaluation.tasks"
    assert message in found


def test_functions_that_no_file_of_the_directory_holds_are_refused(tmp_path: Path) -> None:
    own = write_tasks(tmp_path / "own", CHOICES)
    with (own / "colours.yaml").open("a") as file:
        file.write("process_docs: !function os.listdir\n")
    ((_, found),) = check_evaluation(config(own, "colours"))
    assert "!function os.listdir, which is no file below" in found


def test_names_that_nobody_knows_are_told(tmp_path: Path) -> None:
    own = write_tasks(tmp_path / "own", CHOICES, CHOICES | {"task": "piqa"})
    found = [message for _, message in check_evaluation(config(own, "colour", "piqa", "mmlu_astronomi"))]
    assert "unknown task 'colour'; nearest: colours" in found[0]
    assert found[1] == f"piqa is a task of paribus; give that of {own / 'piqa.yaml'} another name"
    assert "nearest: mmlu_astronomy" in found[2]
    assert found[2].endswith(f"evaluation.include_path={own}: colours, piqa")
    ((_, unlike),) = check_evaluation(config(None, "colour"))
    assert unlike.endswith("evaluation.include_path=DIR makes tasks of your own known, a YAML file each")


def test_a_group_stands_for_its_tasks_in_the_table_too(tmp_path: Path) -> None:
    own = write_tasks(tmp_path / "own", CHOICES, CHOICES | {"task": "shapes"})
    (own / "all.yaml").write_text("group: all_words\ntask: [colours, {task: shapes}]\n")
    command = ["corpus=pydocs_small", "experiment=demo", f"evaluation.include_path={own}", f"root={tmp_path}"]
    command += ["evaluation.tasks=[continuation,all_words,colours,mmlu_stem]"]
    command += ["+experiment.table.groups={words: [all_words]}", "+evaluation.shots_of={all_words: [1], shapes: [2]}"]
    first = compose_command(parse(command)).jobs[0].config
    tasks = first.evaluation.tasks
    assert tasks is not None
    assert tasks[:3] == ("continuation", "shapes", "colours")
    assert len(tasks) == len(set(tasks)) == 3 + 19 and "mmlu_astronomy" in tasks
    assert first.experiment is not None and first.experiment.table is not None
    assert first.experiment.table.groups == {"words": ["colours", "shapes"]}
    assert first.evaluation.shots_of == {"colours": (1,), "shapes": (2,)}


def test_a_task_of_lm_eval_needs_its_records(tmp_path: Path) -> None:
    evaluation = config(None, "mmlu_astronomy", data=str(tmp_path), shots=(0, 2))
    ((path, found),) = check_evaluation(evaluation)
    assert path == "evaluation.data"
    assert f"task mmlu_astronomy needs {tmp_path}/mmlu_astronomy/test.jsonl" in found
    for split, number in (("test", 4), ("dev", 2)):
        records = [
            {"question": f" {split} {place}?", "choices": ["no", "yes", "both", "none"], "answer": place % 4}
            for place in range(number)
        ]
        file = tmp_path / "mmlu_astronomy" / f"{split}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert check_evaluation(evaluation) == []
    tasks = stored(tmp_path / "stage", evaluation)
    assert [record["gold"] for record in read_records(tasks / "mmlu_astronomy.jsonl")] == [0, 1, 2, 3]
    (shown, _) = read_records(tasks / "mmlu_astronomy.fewshot.jsonl")
    assert shown["query"] == "dev 0?\nA. no\nB. yes\nC. both\nD. none\nAnswer:"
    assert yaml.safe_load((tasks / "mmlu_astronomy.yaml").read_text())["fewshot_config"] == {"sampler": "first_n"}
    with pytest.raises(ConfigurationError, match=r"asks for 3 examples .* has 2 \(in .*dev\.jsonl\)"):
        tasks_fingerprint(
            config(None, "mmlu_astronomy", data=str(tmp_path), shots=(3,)), FileDigests(tmp_path / "digests")
        )


@pytest.mark.parametrize(
    ("text", "field"), [("Words: {{question}}", "question"), ("question", "question"), (CHOICES["doc_to_text"], "b")]
)
@pytest.mark.parametrize("file", ["colours.jsonl", "examples.jsonl"])
def test_a_null_that_a_text_would_show_as_a_word_is_refused(tmp_path: Path, text: str, field: str, file: str) -> None:
    """A record that lacks the field has null there."""
    own = write_tasks(tmp_path / "own", CHOICES | {"doc_to_text": text})
    rewrite(own / file, 4, {field: None})
    with pytest.raises(DataError, match=rf"{file}, \w+ 5: ValueError: null in {field} would be the word None"):
        stored(tmp_path, config(own, "colours", shots=(1,)))


@pytest.mark.parametrize("text", ["{% if hint %}{{hint}} {% endif %}{{question}}", "{{ hint or question }}"])
def test_a_null_that_a_text_does_without_is_no_fault(tmp_path: Path, text: str) -> None:
    own = write_tasks(tmp_path / "own", CHOICES | {"doc_to_text": text})
    for file in ("colours.jsonl", "examples.jsonl"):
        rewrite(own / file, 0, {"hint": "a hint"})
    items = read_records(stored(tmp_path, config(own, "colours", shots=(0,))) / "colours.jsonl")
    assert len(items) == 24


def rewrite(path: Path, line: int, change: dict[str, Any]) -> None:
    """Change fields of one record, or take out those of null."""
    lines = path.read_text().splitlines()
    record = json.loads(lines[line]) | change
    lines[line] = json.dumps({field: value for field, value in record.items() if value is not None})
    path.write_text("\n".join(lines) + "\n")


def with_answers(folder: Path, answers: list[Any], examples: list[Any]) -> EvaluationConfig:
    """The task whose records have these answers, as what `doc_to_target` names."""
    own = write_tasks(folder / "own", CHOICES | {"doc_to_target": "right"})
    for name, given in (("colours", answers), ("examples", examples)):
        records = [json.loads(line) for line in (own / f"{name}.jsonl").read_text().splitlines()]
        lines = [json.dumps(record | {"right": answer}) for record, answer in zip(records, given, strict=False)]
        (own / f"{name}.jsonl").write_text("\n".join(lines))
    return config(own, "colours", shots=(1,))


@pytest.mark.parametrize(
    ("answers", "examples", "told"),
    [
        ([3, 0], [0], r"colours.jsonl, item 1: .*is its answer the number of a choice\?"),
        ([0, 3], [0], r"colours.jsonl, item 2: .* must be one of 3 choices, not 3"),
        ([0, 1], [0, 3], r"examples.jsonl, example 2: .* must be one of 3 choices, not 3"),
    ],
)
def test_an_answer_that_is_no_choice_is_told_by_file_and_item(
    answers: list[int], examples: list[int], told: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=told):
        stored(tmp_path, with_answers(tmp_path, answers, examples))


SEED, STEP, SHOTS = 1234, 20, (0, 1)
OWN_TASKS = Path(lm_eval.tasks.__file__).parent
"""Of lm-eval; to look into all of its 14,000 files takes it seconds."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint, and no cache of data sets but a fresh one."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    # lm-eval would ask pip and git about this machine each time it evaluates.
    monkeypatch.setattr(evaluator, "add_env_info", lambda results: None)
    write_drawn_corpus(tmp_path)
    text = " ".join(WORDS)
    tokenizer = Tokenizer.train([text] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])
    write_checkpoints(tmp_path, tokenizer, (STEP,))
    tokenizer.to_huggingface().save_pretrained(tmp_path / "training" / f"step_{STEP:08d}")
    return tmp_path


def ours(root: Path, evaluation: EvaluationConfig) -> dict[tuple[str, int, str], list[float]]:
    """Values of items in order, by task, shots and metric."""
    build_tasks(stage_context(root, evaluation, "tasks", "corpus"))
    build_scores(stage_context(root, evaluation, "evaluation", "training", "tasks", "corpus"))
    found: dict[tuple[str, int, str], list[float]] = {}
    for row in pq.read_table(root / "evaluation" / "items.parquet").to_pylist():
        found.setdefault((row["task"], row["shots"], row["metric"]), []).append(row["value"])
    return found


def theirs(root: Path, include_path: Path, task: str, shots: int) -> list[dict[str, Any]]:
    """lm-eval's own samples of a task of a directory."""
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    checkpoint = root / "training" / f"step_{STEP:08d}"
    model = HFLM(pretrained=str(checkpoint), dtype="float32", device="cpu", batch_size=4)
    manager = TaskManager(include_path=include_path, include_defaults=False)
    results = evaluator.simple_evaluate(
        model, tasks=[task], num_fewshot=shots, task_manager=manager, fewshot_random_seed=SEED, bootstrap_iters=0
    )
    samples: list[dict[str, Any]] = results["samples"][task]
    return samples


def test_multiple_choice_of_a_directory_has_lm_evals_accuracy_and_likelihoods(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_tasks(root / "own", CHOICES)
    monkeypatch.chdir(own)
    evaluation = EvaluationConfig(tasks=("colours",), include_path=str(own), shots=SHOTS, heldout_documents=10)
    found = ours(root, evaluation)
    for shots in SHOTS:
        expected = theirs(root, own, "colours", shots)
        for metric in ("acc", "acc_norm"):
            assert found["colours", shots, metric] == [sample[metric] for sample in expected]
        logs = np.array([[answer[0] for answer in sample["filtered_resps"]] for sample in expected])
        right = logs[np.arange(len(logs)), [int(sample["target"]) for sample in expected]]
        bits = (np.log(np.exp(logs).sum(axis=1)) - right) / np.log(2)
        np.testing.assert_allclose(found["colours", shots, "choice_bits"], bits, rtol=1e-4, atol=1e-4)


def test_written_answers_of_a_directory_are_lm_evals(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that has learned nothing; so the accepted answers are what lm-eval's own run of it wrote."""
    own = write_tasks(root / "own", WRITTEN)
    monkeypatch.chdir(own)
    written = [sample["filtered_resps"][0] for sample in theirs(root, own, "follows", 0) if sample["filter"] == "whole"]
    records = [json.loads(line) for line in (own / "colours.jsonl").read_text().splitlines()]
    lines = [json.dumps(record | {"b": text}) for record, text in zip(records[::2], written[::2], strict=True)]
    rest = [json.dumps(record) for record in records[1::2]]
    (own / "colours.jsonl").write_text("".join(f"{line}\n" for line in (*lines, *rest)))
    evaluation = EvaluationConfig(tasks=("follows",), include_path=str(own), shots=SHOTS, heldout_documents=10)
    found = ours(root, evaluation)
    for shots in SHOTS:
        expected = theirs(root, own, "follows", shots)
        for way, metric in (("whole", "exact_match"), ("word", "exact_match_word")):
            values = [sample["exact_match"] for sample in expected if sample["filter"] == way]
            assert found["follows", shots, metric] == values
    assert sum(found["follows", 0, "exact_match"]) >= len(lines)


def test_a_task_of_lm_eval_has_its_own_numbers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval is given the same records in place of the hub's."""
    records = {
        split: [
            {
                "question": f"{WORDS[place % 12]} {split}?",
                "choices": list(WORDS[place : place + 4]),
                "answer": place % 4,
            }
            for place in range(8)
        ]
        for split in ("test", "dev")
    }
    for split, found in records.items():
        file = root / "data" / "mmlu_astronomy" / f"{split}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(record) + "\n" for record in found))
    evaluation = EvaluationConfig(tasks=("mmlu_astronomy",), data=str(root / "data"), shots=(2,), heldout_documents=10)
    values = ours(root, evaluation)
    splits = {split: datasets.Dataset.from_list(found) for split, found in records.items()}
    monkeypatch.setattr(datasets, "load_dataset", lambda **_: splits)
    samples = theirs(root, OWN_TASKS / "mmlu" / "default", "mmlu_astronomy", 2)
    assert values["mmlu_astronomy", 2, "acc"] == [sample["acc"] for sample in samples]
