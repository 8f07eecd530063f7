"""The stage `prompts`: what a tokenizer does with the prompts of the tasks, before a model is trained with it.

Tokens that cross the boundary of context and continuation, and prompts that are longer than the model's context, are
facts of tokenizer and tasks. Here they are known while there is time to change something.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paribus.config.groups.model import ModelConfig
from paribus.config.schema import in_tokens
from paribus.evaluation.prompts.boundary import Spellings
from paribus.evaluation.prompts.pairs import PromptEncoder, encode_choices
from paribus.evaluation.prompts.requests import Item, crossed_text
from paribus.evaluation.suites.registry import prompted
from paribus.evaluation.tasks.files import read_config
from paribus.evaluation.tasks.items import read_records
from paribus.evaluation.tokenizer import evaluation_tokenizer
from paribus.stage import JSON, Reporter, StageContext
from paribus.store.files import write_json
from paribus.tokenization.encoded_corpus import EncodedCorpus

PROMPTS = "prompts.json"
_REPORT_ITEMS = 256


@dataclass(frozen=True)
class ItemTokens:
    """How an item is cut, without examples before it."""

    tokens: int
    """Of the question and its longest answer."""
    choices: int
    """Continuations that are scored; none where the answer is written."""
    crossing: int
    """Choices of which a token crosses the boundary of context and continuation."""


def build_prompts(context: StageContext) -> dict[str, JSON]:
    """Write `prompts.json`: by task its items, choices, and those that a token crosses; prompts too long, by shots.

    An example has the mean length of those that may be drawn. Raises DataError where a token crosses a boundary and the
    tokens' bytes are not those of the text, which has no score then.
    """
    evaluation, length = context.config.evaluation, _context_length(context.config.model, context.inputs["tokens"])
    cutter = PromptCutter(evaluation_tokenizer(context.inputs["tokens"] / "tokenizer"))
    tasks: dict[str, JSON] = {}
    for name in prompted(evaluation.tasks):
        task = TaskPrompts(context.inputs["tasks"], name, cutter, context.report)
        tasks[name] = task.summary(sorted(set(evaluation.task_shots(name))), length)
    write_json(context.output / PROMPTS, {"tasks": tasks})
    return {"tasks": tasks}


def _context_length(model: ModelConfig, tokens: Path) -> int:
    """In tokens; the encoded text is opened where only bytes say it."""
    if model.context_bytes is None:
        return model.context_length
    return in_tokens(model, EncodedCorpus(tokens).bytes_per_token).context_length


class TaskPrompts:
    """The prompts of a task of the artefact `tasks`, cut with one tokenizer."""

    def __init__(self, tasks: Path, name: str, cutter: "PromptCutter", report: Reporter) -> None:
        self._tasks, self._name, self._cutter, self._report = tasks, name, cutter, report
        self._config = read_config(tasks, name)
        self._items = self._cut(f"{name}.jsonl")

    def summary(self, shots: Sequence[int], context_length: int) -> JSON:
        """Counts for the record; those that a user may want to change are said."""
        long = self._long_prompts(shots, context_length)
        choices, crossed = sum(item.choices for item in self._items), sum(item.crossing for item in self._items)
        if crossed:
            self._report.message(
                f"{self._name}: a token crosses the boundary of context and continuation in {crossed} of {choices} "
                "choices; they are scored as text (docs/evaluation.md)"
            )
        for number_of_shots, number in long.items():
            if number:
                fewer = "give fewer examples (evaluation.shots_of) or " if number_of_shots else ""
                self._report.message(
                    f"{self._name}: {number} of {len(self._items)} {number_of_shots}-shot prompts are longer than the "
                    f"model's {context_length} tokens and lose their beginning; {fewer}raise model.context_length"
                )
        return {
            "items": len(self._items),
            "choices": choices,
            "crossed_items": sum(item.crossing > 0 for item in self._items),
            "crossed_choices": crossed,
            "long_prompts": {str(number_of_shots): number for number_of_shots, number in long.items()},
        }

    def _cut(self, file: str) -> list[ItemTokens]:
        delimiter, records = self._config["target_delimiter"], read_records(self._tasks / file)
        items: list[ItemTokens] = []
        for number, record in enumerate(records):
            items.append(self._cutter.item(record, delimiter, (self._name, number)))
            if len(items) % _REPORT_ITEMS == 0:
                doing = f"cutting prompts of {self._name}"
                self._report.progress(len(items), len(records), unit="items", doing=doing)
        return items

    def _long_prompts(self, shots: Sequence[int], context_length: int) -> dict[int, int]:
        """Shots -> items whose prompt is longer than the model's context."""
        around = self._cutter.tokens(self._config.get("fewshot_delimiter", "\n\n"))
        before = self._cutter.tokens(self._config.get("description", ""))
        shown = self._cut(f"{self._name}.fewshot.jsonl") if max(shots) else []
        mean = sum(example.tokens + around for example in shown) / max(1, len(shown))
        # The last token of an answer is predicted and not read.
        return {
            number: sum(before + number * mean + item.tokens - 1 > context_length for item in self._items)
            for number in shots
        }


class PromptCutter:
    """Cuts items with one tokenizer."""

    def __init__(self, tokenizer: PromptEncoder) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._tokenizer.token_bytes())

    def tokens(self, text: str) -> int:
        """Number of tokens of a text."""
        return len(self._tokenizer.encode(text))

    def item(self, record: Mapping[str, Any], delimiter: str, name: Item) -> ItemTokens:
        """How a record that `paribus.evaluation.tasks.items.write_items` wrote is cut."""
        encode, eos_id = self._tokenizer.encode, self._tokenizer.eos_id
        cut = [encode_choices(encode, eos_id, *texts) for texts in _texts(record, delimiter)]
        tokens = max(len(choices.context) + max(map(len, choices.continuations)) for choices in cut)
        if "answers" in record:
            return ItemTokens(tokens, 0, 0)
        for choices in cut:
            if choices.crossing:
                crossed_text(self._spellings, choices, name)
        return ItemTokens(
            tokens, sum(len(choices.continuations) for choices in cut), sum(choices.crossing for choices in cut)
        )


def _texts(record: Mapping[str, Any], delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Each context of an item with its continuations, as lm-eval puts them together."""
    if "contexts" in record:
        yield from ((text, [delimiter + record["ending"]]) for text in record["contexts"])
    elif "choices" in record:
        yield record["query"], [delimiter + choice for choice in record["choices"]]
    elif "target" in record:
        yield record["query"], [delimiter + record["target"]]
    else:
        yield record["query"], [delimiter + ", ".join(spans) for spans in record["answers"]]
