"""Tasks of a user's directory and of lm-eval: what is refused, pinned, stored and scored."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import lm_eval.tasks
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml  # type: ignore[import-untyped]
from lm_eval import evaluator

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.items import read_records
from paribus.evaluation.preflight import check_evaluation, tasks_fingerprint
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.store.files import FileDigests
from paribus.tokenization import Tokenizer
from support.evaluations import WORDS, evaluation_context, write_checkpoints, write_drawn_corpus

CHOICES: dict[str, Any] = {
    "task": "colours",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "colours.jsonl", "train": "examples.jsonl"}},
    "output_type": "multiple_choice",
    "test_split": "test",
    "fewshot_split": "train",
    "description": "Which words come next?\n\n",
    "doc_to_text": "Words: {{question.strip()}}\nNext:",
    "doc_to_choice": "{{[a, b, c]}}",
    "doc_to_target": "{{['a', 'b', 'c'].index(right)}}",
    "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}, {"metric": "mcc"}],
}
WRITTEN: dict[str, Any] = {
    "task": "follows",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "colours.jsonl"}},
    "output_type": "generate_until",
    "test_split": "test",
    "doc_to_text": "{{question}} {{a}}",
    "doc_to_target": "{{[a, b]}}",
    "fewshot_config": {"sampler": "first_n", "samples": [{"question": "order", "a": "token", "b": "byte"}]},
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 6, "do_sample": False},
    "filter_list": [
        {"name": "whole", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]},
        {"name": "word", "filter": [{"function": "regex", "regex_pattern": "([a-z]+)"}, {"function": "take_first"}]},
    ],
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True}],
}


def write_tasks(folder: Path, *tasks: dict[str, Any], number: int = 24) -> Path:
    """The YAML of tasks, and records of random words."""
    folder.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        (folder / f"{task['task']}.yaml").write_text(yaml.safe_dump(task, sort_keys=False), encoding="utf-8")
    write_records(folder / "colours.jsonl", number, seed=1)
    write_records(folder / "examples.jsonl", number, seed=2)
    return folder


def write_records(path: Path, number: int, seed: int) -> None:
    draw = random.Random(seed)
    texts = (
        {key: " ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for key in ("question", "a", "b", "c")}
        for _ in range(number)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(text | {"right": draw.choice("abc")}) + "\n" for text in texts), encoding="utf-8"
    )


def config(folder: Path | None, *tasks: str, **fields: Any) -> EvaluationConfig:
    path = None if folder is None else str(folder)
    return EvaluationConfig(tasks=tasks, include_path=path, heldout_documents=10, **fields)


def stored(root: Path, evaluation: EvaluationConfig) -> Path:
    write_drawn_corpus(root)
    build_tasks(evaluation_context(root, evaluation, "tasks", "corpus"))
    return root / "tasks"


def test_the_fingerprint_follows_yaml_python_and_records_and_not_their_place(tmp_path: Path) -> None:
    task = write_tasks(tmp_path / "own", CHOICES) / "colours.yaml"
    code, digests = task.with_name("helpers.py"), FileDigests(tmp_path / "digests")

    def fingerprint(directory: Path = task.parent) -> str:
        return json.dumps(tasks_fingerprint(config(directory, "colours", shots=(2,)), digests))

    fingerprints = [fingerprint()]
    task.write_text(task.read_text().replace("Next:", "Then:"))
    fingerprints.append(fingerprint())
    write_records(task.with_name("colours.jsonl"), 25, seed=1)
    fingerprints.append(fingerprint())
    task.write_text(task.read_text() + "process_docs: !function helpers.longer\n")
    for docs in ("docs", "docs.select(range(3))"):
        code.write_text(f"def longer(docs):\n    return {docs}\n")
        fingerprints.append(fingerprint())
    assert len(set(fingerprints)) == 5
    assert len(read_records(stored(tmp_path, config(task.parent, "colours", shots=(2,))) / "colours.jsonl")) == 3
    assert fingerprint(task.parent.rename(tmp_path / "moved")) == fingerprints[-1]


def test_a_missing_field_is_refused_where_a_prompt_would_show_it_as_none(tmp_path: Path) -> None:
    texts = [("Words: {{question}}", "question"), ("question", "question"), (CHOICES["doc_to_text"], "b")]
    for number, file in enumerate(("colours.jsonl", "examples.jsonl")):
        for text, field in texts:
            own = write_tasks(tmp_path / "own", CHOICES | {"doc_to_text": text})
            rewrite(own / file, 4, {field: None})
            with pytest.raises(DataError, match=rf"{file}, \w+ 5: ValueError: null in {field} would be the word None"):
                stored(tmp_path / f"{text}{number}", config(own, "colours", shots=(1,)))
    for text in ("{% if hint %}{{hint}} {% endif %}{{question}}", "{{ hint or question }}"):
        own = write_tasks(tmp_path / "own", CHOICES | {"doc_to_text": text})
        for file in ("colours.jsonl", "examples.jsonl"):
            rewrite(own / file, 0, {"hint": "a hint"})
        assert len(read_records(stored(tmp_path / text, config(own, "colours", shots=(0,))) / "colours.jsonl")) == 24


def rewrite(path: Path, line: int, change: dict[str, Any]) -> None:
    """Change fields of one record, or take out those of null."""
    lines = path.read_text().splitlines()
    record = json.loads(lines[line]) | change
    lines[line] = json.dumps({field: value for field, value in record.items() if value is not None})
    path.write_text("\n".join(lines) + "\n")


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
    build_tasks(evaluation_context(root, evaluation, "tasks", "corpus"))
    build_scores(evaluation_context(root, evaluation, "evaluation", "training", "tasks", "corpus"))
    values: dict[tuple[str, int, str], list[float]] = {}
    for row in pq.read_table(root / "evaluation" / "items.parquet").to_pylist():
        values.setdefault((row["task"], row["shots"], row["metric"]), []).append(row["value"])
    return values


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
    values = ours(root, config(own, "colours", shots=SHOTS))
    for shots in SHOTS:
        expected = theirs(root, own, "colours", shots)
        for metric in ("acc", "acc_norm"):
            assert values["colours", shots, metric] == [sample[metric] for sample in expected]
        logs = np.array([[answer[0] for answer in sample["filtered_resps"]] for sample in expected])
        right = logs[np.arange(len(logs)), [int(sample["target"]) for sample in expected]]
        bits = (np.log(np.exp(logs).sum(axis=1)) - right) / np.log(2)
        np.testing.assert_allclose(values["colours", shots, "choice_bits"], bits, rtol=1e-4, atol=1e-4)


def test_written_answers_of_a_directory_are_lm_evals(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that has learned nothing; so the accepted answers are what lm-eval's own run of it wrote."""
    own = write_tasks(root / "own", WRITTEN)
    monkeypatch.chdir(own)
    written = [sample["filtered_resps"][0] for sample in theirs(root, own, "follows", 0) if sample["filter"] == "whole"]
    for line in range(0, len(written), 2):
        rewrite(own / "colours.jsonl", line, {"b": written[line]})
    values = ours(root, config(own, "follows", shots=SHOTS))
    for shots in SHOTS:
        expected = theirs(root, own, "follows", shots)
        for way, metric in (("whole", "exact_match"), ("word", "exact_match_word")):
            samples = [sample["exact_match"] for sample in expected if sample["filter"] == way]
            assert values["follows", shots, metric] == samples
    assert sum(values["follows", 0, "exact_match"]) >= len(written) // 2


def test_a_task_of_lm_eval_has_its_items_examples_and_scores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval is given the same records in place of the hub's."""
    data = root / "data"
    evaluation = config(None, "mmlu_astronomy", data=str(data), shots=(0, 2))
    data.mkdir()
    ((path, problem),) = check_evaluation(evaluation)
    assert path == "evaluation.data"
    assert f"task mmlu_astronomy needs {data}/mmlu_astronomy/test.jsonl" in problem
    (data / "mmlu_astronomy").mkdir()
    splits = {}
    for split, number in (("test", 8), ("dev", 2)):
        records = [
            {"question": f" {WORDS[place]} {split}?", "choices": list(WORDS[place : place + 4]), "answer": place % 4}
            for place in range(number)
        ]
        (data / "mmlu_astronomy" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, records)))
        splits[split] = datasets.Dataset.from_list(records)
    assert check_evaluation(evaluation) == []
    with pytest.raises(ConfigurationError, match=r"asks for 3 examples .* has 2 \(in .*dev\.jsonl\)"):
        tasks_fingerprint(replace(evaluation, shots=(3,)), FileDigests(root / "digests"))
    values = ours(root, evaluation)
    (example, _) = read_records(root / "tasks" / "mmlu_astronomy.fewshot.jsonl")
    assert example["query"] == "order dev?\nA. order\nB. token\nC. corpus\nD. merge\nAnswer:"
    about = yaml.safe_load((root / "tasks" / "mmlu_astronomy.yaml").read_text())
    assert about["fewshot_config"] == {"sampler": "first_n"}
    monkeypatch.setattr(datasets, "load_dataset", lambda **_: splits)
    samples = theirs(root, OWN_TASKS / "mmlu" / "default", "mmlu_astronomy", 2)
    assert values["mmlu_astronomy", 2, "acc"] == [sample["acc"] for sample in samples]
