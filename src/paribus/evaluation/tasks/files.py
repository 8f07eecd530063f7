"""The files of a task: lm-eval's YAML, the scored items and the examples, as JSON lines beside it.

Paths in the YAML are relative, so an artefact may be moved; lm-eval itself can use it from inside the directory.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml  # type: ignore[import-untyped]

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import BenchmarkPrompt, Generation
from paribus.evaluation.tasks.items import AnswerItem, BlankItem, Item, ItemSet, TextItem, write_items

ACCURACIES = ("acc", "acc_norm", "acc_bytes")
"""lm-eval's: the most probable choice is right, by log-probability as it is, a character, or a UTF-8 byte."""
SPANS_JOINED = "{{ answers | map('join', ', ') | list }}"


def write_task(  # noqa: PLR0917 (what a task is made of)
    directory: Path,
    name: str,
    items: ItemSet,
    prompt: BenchmarkPrompt,
    generation: Generation | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write `<name>.yaml`, `<name>.jsonl` (scored) and `<name>.fewshot.jsonl` (examples).

    `generation` goes with items whose answer is written; `changes` are other values of the YAML.
    """
    write_items(directory / f"{name}.jsonl", items.evaluated)
    write_items(directory / f"{name}.fewshot.jsonl", items.fewshot)
    config = task_config(name, items, prompt, generation) | dict(changes)
    content = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    (directory / f"{name}.yaml").write_text(content, encoding="utf-8")


def task_config(
    name: str, items: ItemSet, prompt: BenchmarkPrompt, generation: Generation | None = None
) -> dict[str, Any]:
    """An lm-eval task over the two files."""
    form = _form(items, generation)
    metrics = form.pop("metric_list")
    surroundings = {"description": prompt.description} if prompt.description else {}
    if prompt.fewshot_delimiter != BenchmarkPrompt.fewshot_delimiter:
        surroundings["fewshot_delimiter"] = prompt.fewshot_delimiter
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{name}.jsonl", "fewshot": f"{name}.fewshot.jsonl"}},
        "output_type": form.pop("output_type"),
        "test_split": "test",
        "fewshot_split": "fewshot",
        **form,
        **surroundings,
        "target_delimiter": prompt.target_delimiter,
        "metric_list": metrics,
        "metadata": {
            "version": 1.0,
            "source": prompt.source,
            "chance": items.chance(),
            "fewshot_source": items.fewshot_source,
        },
    }


def _form(items: ItemSet, generation: Generation | None) -> dict[str, Any]:
    """What lm-eval is told about this kind of item."""
    match items.evaluated[0]:
        case Item():
            return _multiple_choice("query", "choices", "gold", *ACCURACIES)
        case BlankItem():  # an integer as text tells lm-eval that the choices are contexts
            return _multiple_choice("gold", "contexts", "ending", "acc")
        case TextItem():
            metrics = [_metric("perplexity", "perplexity", better="lower"), _metric("acc")]
            return {
                "output_type": "loglikelihood",
                "doc_to_text": "query",
                "doc_to_target": "target",
                "metric_list": metrics,
            }
        case AnswerItem():
            if generation is None:
                raise ValueError("items whose answer is written need a Generation")
            return _generation(generation)


def _multiple_choice(text: str, choice: str, target: str, *metrics: str) -> dict[str, Any]:
    return {
        "output_type": "multiple_choice",
        "doc_to_text": text,
        "doc_to_choice": choice,
        "doc_to_target": target,
        "metric_list": [_metric(name) for name in metrics],
    }


def _generation(generation: Generation) -> dict[str, Any]:
    ending = {"until": list(generation.until), "max_gen_toks": generation.max_tokens, "do_sample": False}
    filters = [{"function": "remove_whitespace"}, {"function": "take_first"}]
    return {
        "output_type": "generate_until",
        "doc_to_text": "query",
        "doc_to_target": SPANS_JOINED,
        "generation_kwargs": ending,
        "filter_list": [{"name": "remove_whitespace", "filter": filters}],
        "metric_list": [_metric("exact_match") | dict(generation.exact_match)],
    }


def choice_metrics(also: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The metrics of items with choices, and others of lm-eval's."""
    return [_metric(name) for name in (*ACCURACIES, *also)]


def _metric(name: str, aggregation: str = "mean", *, better: str = "higher") -> dict[str, Any]:
    return {"metric": name, "aggregation": aggregation, "higher_is_better": better == "higher"}


def read_config(directory: Path, name: str) -> dict[str, Any]:
    """The task's YAML; DataError where it is none or names code, as lm-eval's own may."""
    path = directory / f"{name}.yaml"
    try:
        config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path}: no task that could be read ({error})") from error
    return config
