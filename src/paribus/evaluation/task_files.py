"""The files of a task: lm-eval's YAML, the scored items and the examples, as JSON lines beside it.

Paths in the YAML are relative, so an artefact may be moved; lm-eval itself can use it from inside the directory.
"""

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from paribus.evaluation.items import ItemSet, write_items

METRICS = ("acc", "acc_norm", "acc_bytes")
"""lm-eval's: the most probable choice is right, by log-probability as it is, a character, or a UTF-8 byte."""


def write_task(directory: Path, name: str, items: ItemSet, *, target_delimiter: str, source: str) -> None:
    """Write `<name>.yaml`, `<name>.jsonl` (scored) and `<name>.fewshot.jsonl` (examples)."""
    write_items(directory / f"{name}.jsonl", items.evaluated)
    write_items(directory / f"{name}.fewshot.jsonl", items.fewshot)
    config = task_config(name, items, target_delimiter=target_delimiter, source=source)
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    (directory / f"{name}.yaml").write_text(text, encoding="utf-8")


def task_config(name: str, items: ItemSet, *, target_delimiter: str, source: str) -> dict[str, Any]:
    """An lm-eval multiple-choice task over the two files."""
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{name}.jsonl", "fewshot": f"{name}.fewshot.jsonl"}},
        "output_type": "multiple_choice",
        "test_split": "test",
        "fewshot_split": "fewshot",
        "doc_to_text": "query",
        "doc_to_choice": "choices",
        "doc_to_target": "gold",
        "target_delimiter": target_delimiter,
        "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in METRICS],
        "metadata": {
            "version": 1.0,
            "source": source,
            "chance": items.chance(),
            "fewshot_source": items.fewshot_source,
        },
    }


def read_config(directory: Path, name: str) -> dict[str, Any]:
    """The task's YAML."""
    config: dict[str, Any] = yaml.safe_load((directory / f"{name}.yaml").read_text(encoding="utf-8"))
    return config
