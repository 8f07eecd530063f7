"""Rendering of tasks that are none of ours: lm-eval makes the texts of the records, once, before any model is there.

What is stored must give the prompts that lm-eval itself puts together, which is checked item by item. Imports lm_eval:
import this module late.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import datasets
from lm_eval.api.task import ConfigurableTask

from paribus.errors import DataError, Problem
from paribus.evaluation.heldout import sample_of
from paribus.evaluation.items import (
    AnswerItem,
    AnyItem,
    BenchmarkPrompt,
    BlankItem,
    Generation,
    Item,
    ItemSet,
    TextItem,
    split_pool,
    text_digest,
    training_size,
)
from paribus.evaluation.lm_eval_tasks import TEXT_FIELDS, Definition, Function, SplitFiles, harness_folder, read_split

T = TypeVar("T")
_SCORED, _EXAMPLES = "scored", "examples"


@dataclass(frozen=True)
class Example:
    """An example as it stands in a prompt."""

    id: str
    query: str
    answer: str

    def like(self, item: AnyItem) -> AnyItem:
        """The example as an item of the class of the scored ones."""
        match item:
            case Item():
                return Item(self.id, self.query, (self.answer,), 0)
            case BlankItem():
                return BlankItem(self.id, (self.query,), self.answer, 0)
            case TextItem():
                return TextItem(self.id, self.query, self.answer)
            case AnswerItem():
                return AnswerItem(self.id, self.query, ((self.answer,),))


_TOKENS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names for the largest number of tokens of an answer: the first that is given counts, 256 without any."""


def borrowed_items(
    task: Definition, files: SplitFiles, shots: int
) -> tuple[ItemSet, BenchmarkPrompt, Generation | None, dict[str, Any]]:
    """Items and examples by the texts that lm-eval makes; DataError where it makes none.

    The last is what the YAML of its items does not say of itself: metrics, filters, how examples are drawn.
    """
    made = BorrowedTask(task, files)
    items, examples = made.items(), made.examples()
    in_order, writes = task.fewshot.get("sampler") == "first_n", task.kind == "generate_until"
    if examples:
        scored, distinct = {_answered(item) for item in items}, dict[tuple[str, str], Example]()
        for example in examples:
            distinct.setdefault((example.query, example.answer), example)
        shown = [example for key, example in distinct.items() if key not in scored]
        if not in_order:
            shown = sample_of(shown, training_size(shots), lambda one: text_digest(f"{one.query}\0{one.answer}"))
        pool = ItemSet(items, [], f"{task.fewshot_split} split" if task.fewshot_split else "the task's own YAML")
    else:
        pool = split_pool(items, None, shots)
        shown = [made.as_example(int(item.id.rpartition("/")[2])) for item in pool.fewshot]
    pool = replace(pool, fewshot=[example.like(items[0]) for example in shown])
    generation = None
    if writes:
        limits = task.config.get("generation_kwargs") or {}
        most = next((limits[name] for name in _TOKENS if limits.get(name) is not None), 256)
        generation = Generation(made.until, "lm_eval", max_tokens=int(most))
    changes: dict[str, Any] = {"metric_list": task.metrics}
    if task.config.get("filter_list"):
        changes["filter_list"] = task.config["filter_list"]
    elif writes:
        changes["filter_list"] = [{"name": "none", "filter": [{"function": "take_first"}]}]
    if in_order:
        changes["fewshot_config"] = {"sampler": "first_n"}
    return pool, made.prompt, generation, changes


def _answered(item: AnyItem) -> tuple[str, str]:
    match item:
        case Item():
            return item.query, item.choices[item.gold]
        case BlankItem():
            return item.contexts[item.gold], item.ending
        case TextItem():
            return item.query, item.target
        case _:
            return item.query, item.answers[0][0]


class BorrowedTask:
    """A task as lm-eval makes it of its records."""

    def __init__(self, task: Definition, files: SplitFiles) -> None:
        """DataError where lm-eval refuses the records or the YAML."""
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        self.definition, (self.scored, self.fewshot) = task, files
        splits = {_SCORED: _dataset(self.scored, task)}
        if self.fewshot is not None:
            splits[_EXAMPLES] = _dataset(self.fewshot, task)
        self._task = self._guarded(f"{self.scored}, item 1", lambda: ConfigurableTask(config=_config(task, splits)))

    @property
    def prompt(self) -> BenchmarkPrompt:
        """How its texts are put together."""
        config = self._task.config
        return BenchmarkPrompt(
            f"{self.definition.path.name} of {'evaluation.include_path' if self.definition.ours else 'lm-eval'}",
            target_delimiter=config.target_delimiter,
            fewshot_delimiter=config.fewshot_delimiter,
            description=config.description or "",
        )

    @property
    def until(self) -> tuple[str, ...]:
        """Stop strings of a written answer."""
        stops = self._task.config.generation_kwargs["until"]
        return (stops,) if isinstance(stops, str) else tuple(stops)

    def items(self) -> list[AnyItem]:
        """Items that are scored, in order; DataError names the item that cannot be."""
        return [
            self._guarded(f"{self.scored}, item {number}", partial(self._item, doc, number))
            for number, doc in enumerate(self._task.task_docs, start=1)
        ]

    def examples(self) -> list[Example]:
        """Documents that examples are drawn from, in lm-eval's order; none where those of the scored split would be."""
        if self.fewshot is None and self.definition.fewshot.get("samples") is None:
            return []
        where = self.fewshot or self.definition.path
        return [
            self._guarded(f"{where}, example {number}", partial(self._example, doc, number))
            for number, doc in enumerate(self._task.fewshot_docs(), start=1)
        ]

    def as_example(self, number: int) -> Example:
        """The scored item of a number, from 1, as it would stand in a prompt."""
        doc = self._task.task_docs[number - 1]
        return self._guarded(f"{self.scored}, item {number}", partial(self._example, doc, number))

    def _item(self, doc: Any, number: int) -> AnyItem:
        task, name = self._task, f"{self.definition.scored_split}/{number}"
        text, target, choices = self._texts(doc, task.config)
        choices = [str(choice) for choice in choices]
        if task.multiple_input:
            return BlankItem(name, self._contexts(doc, choices), str(target), _index(text, choices))
        query = self._query(doc, text)
        match task.OUTPUT_TYPE:
            case "multiple_choice":
                return Item(name, query, tuple(choices), _index(target, choices))
            case "loglikelihood":
                return TextItem(name, query, str(target))
            case _:
                accepted = choices[_index(target, choices)] if choices else target
                answers = accepted if isinstance(accepted, list) else [accepted]
                return AnswerItem(name, query, tuple((str(answer),) for answer in answers))

    def _query(self, doc: Any, text: Any) -> str:
        """The question with what the answer begins with, checked against the prompt that lm-eval makes of it."""
        prefix = self._task.doc_to_prefix(doc) or ""
        query = "".join(
            turn.to_text()
            for turn in self._task.build_qa_turn(
                q=text, gen_prefix=prefix or None, tgt_delim=self._task.config.target_delimiter, few_delim=""
            )
        )
        if self._task.fewshot_context(doc, 0, gen_prefix=prefix or None) != self.prompt.description + query:
            raise ValueError("lm-eval puts the prompt together otherwise than it is stored; is its description a form?")
        return query

    def _contexts(self, doc: Any, choices: Sequence[str]) -> tuple[str, ...]:
        rendered = self._task.fewshot_context(doc, 0)
        if rendered != [self.prompt.description + choice for choice in choices]:
            raise ValueError("lm-eval puts the prompt together otherwise than it is stored")
        return tuple(choices)

    def _example(self, doc: Any, number: int) -> Example:
        """Render an example as lm-eval's `fewshot_context` does, with the fields that are of examples alone."""
        task, own = self._task, self._task.fewshot_cfg
        text, answer, choices = self._texts(doc, own)
        if task.multiple_input:
            text, choices = choices[text], []
        if choices and isinstance(answer, int):
            answer = _index(answer, choices)
        prefix = task.resolve_field(doc, own.gen_prefix) or None
        turns = task.build_qa_turn(
            q=text,
            c=choices or None,
            a=answer,
            gen_prefix=prefix,
            tgt_delim=own.target_delimiter,
            few_delim=own.fewshot_delimiter,
        )
        whole, prompt = "".join(turn.to_text() for turn in turns), self.prompt
        shown = choices[answer] if choices and isinstance(answer, int) else answer
        shown = str(shown[0] if isinstance(shown, list) else shown)
        ending = f"{prompt.target_delimiter}{shown}{prompt.fewshot_delimiter}"
        if not whole.endswith(ending):
            raise ValueError(
                "lm-eval puts examples together otherwise than they are stored (fewshot_config, gen_prefix)"
            )
        split = self.definition.fewshot_split or self.definition.scored_split
        return Example(f"{split}/{number}", whole[: len(whole) - len(ending)], shown)

    def _texts(self, doc: Any, config: Any) -> tuple[Any, Any, list[Any]]:
        """Text, answer and choices of a record; ValueError for a null that one of them has as the word None."""
        task, own = self._task, [self.definition.config.get(name) for name in TEXT_FIELDS]

        def render(doc: Any) -> tuple[Any, Any, list[Any]]:
            choices = task.doc_to_choice(doc, config.doc_to_choice) if config.doc_to_choice else []
            return task.doc_to_text(doc, config.doc_to_text), task.doc_to_target(doc, config.doc_to_target), choices

        rendered, filled = render(doc), _filled(doc)
        if filled != doc and not any(isinstance(text, Function) for text in own):
            nulls = [field for field, value in doc.items() if filled[field] != value]
            if str(rendered).count("None") > str(render(filled)).count("None"):
                raise ValueError(f"null in {', '.join(nulls)} would be the word None; give it, or leave the record out")
        return rendered

    def _guarded(self, where: str, make: Callable[[], T]) -> T:
        """Call `make`; whatever goes wrong in lm-eval or in a task's own code is told by its place."""
        try:
            return make()
        except Exception as error:
            hint = "; is its answer the number of a choice?" if isinstance(error, IndexError) else ""
            task = f"task {self.definition.name} ({self.definition.path})"
            message = f"{task} cannot be made of {where}: {type(error).__name__}: {error}{hint}"
            raise DataError(Problem("evaluation.tasks", message)) from error


def _config(task: Definition, splits: dict[str, Any]) -> dict[str, Any]:
    config = {key: value for key, value in _loaded(task.config).items() if key not in _OF_DATA}
    config |= {"test_split": _SCORED, "custom_dataset": lambda **_: splits}
    if _EXAMPLES in splits:
        config["fewshot_split"] = _EXAMPLES
    if isinstance(own := config.get("fewshot_config"), dict):
        config["fewshot_config"] = {key: value for key, value in own.items() if key != "split"}
    return config | {"metric_list": task.metrics}


_OF_DATA = (
    "dataset_path", "dataset_name", "dataset_kwargs", "training_split", "validation_split", "test_split",
    "fewshot_split", "group", "tag", "task_alias", "task_list",
)  # fmt: skip


def _loaded(value: Any) -> Any:
    match value:
        case Function():
            return getattr(_module(value.file), value.name)
        case dict():
            return {key: _loaded(part) for key, part in value.items()}
        case list():
            return [_loaded(part) for part in value]
        case _:
            return value


@lru_cache
def _module(file: Path) -> ModuleType:
    """A Python file beside YAML, which the version of lm-eval pins, or the fingerprint of the task."""
    own = harness_folder().resolve()
    inside = file.resolve().is_relative_to(own)  # with the name of its package, since it may import from that
    parts = file.resolve().relative_to(own.parent.parent).with_suffix("").parts if inside else (file.stem,)
    spec = spec_from_file_location(".".join(parts), file)
    if spec is None or spec.loader is None:
        raise DataError(Problem("evaluation.tasks", f"{file} is no Python file"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _dataset(path: Path, task: Definition) -> datasets.Dataset:
    records = read_split(path, task)
    fields = dict.fromkeys(name for record in records for name in record)  # from_list has those of the first alone
    try:
        return datasets.Dataset.from_list([{name: record.get(name) for name in fields} for record in records])
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: the records are not of one form ({error})") from error


def _filled(value: Any) -> Any:
    """A value with empty texts in place of its nulls."""
    if isinstance(value, dict):
        return {key: _filled(part) for key, part in value.items()}
    return [_filled(part) for part in value] if isinstance(value, list) else "" if value is None else value


def _index(gold: Any, choices: Sequence[str]) -> int:
    """The number of the right choice, given as that, as a Boolean, as its text or as a list of one of these."""
    if isinstance(gold, list) and len(gold) == 1:
        (gold,) = gold
    number = choices.index(gold) if isinstance(gold, str) and gold in choices else gold
    if not isinstance(number, int) or not 0 <= number < len(choices):
        point = "; one number with a point makes all of the field such" if isinstance(gold, float) else ""
        raise ValueError(f"the right answer must be one of {len(choices)} choices, not {gold!r}{point}")
    return int(number)
