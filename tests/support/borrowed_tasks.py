"""A directory of lm-eval tasks as a user may have one, with its records."""

import json
import random
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from support.evaluations import WORDS

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
