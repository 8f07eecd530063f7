"""Items, examples and YAML of a task that is none of ours, as the stage `tasks` stores them.

Imports lm_eval where items are made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from paribus.evaluation.items import (
    AnyItem,
    BenchmarkPrompt,
    BlankItem,
    Generation,
    Item,
    ItemSet,
    TextItem,
    split_off,
    split_pool,
    text_digest,
    training_size,
)
from paribus.evaluation.lm_eval_tasks import Definition, SplitFiles, read_split
from paribus.stage import JSON
from paribus.store.files import FileDigests

if TYPE_CHECKING:
    from paribus.evaluation.lm_eval_render import Example


_TOKENS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names for the largest number of tokens of an answer, the first that is given counts."""
_DEFAULT_TOKENS = 256
"""Its number where none is given."""


@dataclass(frozen=True)
class RenderedTask:
    """A task that can be written."""

    items: ItemSet
    prompt: BenchmarkPrompt
    generation: Generation | None
    changes: Mapping[str, Any]
    """What the YAML of its items does not say of itself: metrics, filters, how examples are drawn."""


def borrowed_items(task: Definition, files: SplitFiles, shots: int) -> RenderedTask:
    """Items and examples by the texts that lm-eval makes; DataError where it makes none."""
    from paribus.evaluation.lm_eval_render import BorrowedTask

    made = BorrowedTask(task, files)
    items, examples = made.items(), made.examples()
    if examples:
        chosen = _outside(items, examples)
        shown = chosen if _in_order(task) else _even(chosen, training_size(shots))
        pool = ItemSet(items, [], f"{task.fewshot_split} split" if task.fewshot_split else "the task's own YAML")
    else:
        pool = split_pool(items, None, shots)
        shown = [made.as_example(int(item.id.rpartition("/")[2])) for item in pool.fewshot]
    pool = replace(pool, fewshot=[example.like(items[0]) for example in shown])
    generation = None
    if _writes(task):
        limits = task.config.get("generation_kwargs") or {}
        most = next((limits[name] for name in _TOKENS if limits.get(name) is not None), _DEFAULT_TOKENS)
        generation = Generation(made.until, "lm_eval", max_tokens=int(most))
    return RenderedTask(pool, made.prompt, generation, _changes(task))


def pinned(task: Definition, files: SplitFiles, digests: FileDigests) -> dict[str, JSON]:
    """What the items depend on: lm-eval, the YAML, Python beside a YAML of the user's, and the records."""
    code: dict[str, JSON] = {path.relative_to(task.root).as_posix(): digests.of(path) for path in task.code()}
    return {
        "lm_eval": version("lm_eval"),
        "task": task.pin(),
        **({"code": code} if code else {}),
        "scored": digests.of(files.scored),
        "fewshot": digests.of(files.fewshot) if files.fewshot else None,
    }


def count_examples(task: Definition, files: SplitFiles, shots: int) -> int:
    """Examples there may be, by the records alone."""
    if files.fewshot is not None:
        return len(read_split(files.fewshot, task))
    if (samples := task.fewshot.get("samples")) is not None:
        return len(samples) if isinstance(samples, list) else shots
    return split_off(len(read_split(files.scored, task)), shots)


def _changes(task: Definition) -> dict[str, Any]:
    metrics = [{"aggregation": "mean", "higher_is_better": True} | entry for entry in task.metrics]
    changes: dict[str, Any] = {"metric_list": metrics}
    if task.config.get("filter_list"):
        changes["filter_list"] = task.config["filter_list"]
    elif _writes(task):
        changes["filter_list"] = [{"name": "none", "filter": [{"function": "take_first"}]}]
    if _in_order(task):
        changes["fewshot_config"] = {"sampler": "first_n"}
    return changes


def _writes(task: Definition) -> bool:
    return task.kind == "generate_until"


def _in_order(task: Definition) -> bool:
    return bool(task.fewshot.get("sampler") == "first_n")


def _outside(items: Sequence[AnyItem], examples: Sequence["Example"]) -> list["Example"]:
    """Examples that are no scored item, each once."""
    scored = {_answered(item) for item in items}
    distinct = {(example.query, example.answer): example for example in reversed(examples)}
    return [
        example
        for example in examples
        if distinct.get(key := (example.query, example.answer)) is example and key not in scored
    ]


def _answered(item: AnyItem) -> tuple[str, str]:
    """A scored item as it would stand in a prompt."""
    match item:
        case Item():
            return item.query, item.choices[item.gold]
        case BlankItem():
            return item.contexts[item.gold], item.ending
        case TextItem():
            return item.query, item.target
        case _:
            return item.query, item.answers[0][0]


def _even(examples: Sequence["Example"], most: int) -> list["Example"]:
    """At most so many, those of the smallest digests, in their order."""
    keys = [text_digest(f"{example.query}\0{example.answer}") for example in examples]
    chosen = set(sorted(keys)[:most])
    return [example for example, key in zip(examples, keys, strict=True) if key in chosen]
