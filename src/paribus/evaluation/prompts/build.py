"""The stage `prompts`: what a tokenizer does with the prompts of the tasks, before a model is trained with it.

Tokens that cross the boundary of context and continuation, and prompts that are longer than the model's context, are
facts of tokenizer and tasks. Here they are known while there is time to change something.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from paribus.config.byte_sizes import in_tokens
from paribus.config.schema import RunConfig
from paribus.evaluation.prompts.boundary import Spellings
from paribus.evaluation.prompts.pairs import PromptEncoder, encode_choices
from paribus.evaluation.prompts.requests import Item, crossed_text
from paribus.evaluation.suites.registry import prompted
from paribus.evaluation.tasks.files import read_config
from paribus.evaluation.tasks.items import read_records
from paribus.evaluation.tokenizer import evaluation_tokenizer
from paribus.stage.context import JSON, StageContext
from paribus.store.atomic import write_json
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
    context = replace(context, config=_in_tokens(context))
    cutter = PromptCutter(evaluation_tokenizer(context.inputs["tokens"] / "tokenizer"))
    tasks = {name: _task(context, cutter, name) for name in prompted(context.config.evaluation.tasks)}
    write_json(context.output / PROMPTS, {"tasks": tasks})
    return {"tasks": tasks}


def _in_tokens(context: StageContext) -> RunConfig:
    """The configuration with the context length in tokens; the encoded text is opened where only bytes say it."""
    config = context.config
    if config.model.context_bytes is None:
        return config
    encoded = EncodedCorpus(context.inputs["tokens"])
    return replace(config, model=in_tokens(config.model, encoded.bytes_per_token))


def _task(context: StageContext, cutter: "PromptCutter", name: str) -> JSON:
    items = _cut(context, cutter, name, f"{name}.jsonl")
    long = _long_prompts(context, cutter, name, items)
    choices, crossed = sum(item.choices for item in items), sum(item.crossing for item in items)
    if crossed:
        context.report.message(
            f"{name}: a token crosses the boundary of context and continuation in {crossed} of {choices} choices; they "
            "are scored as text (docs/evaluation.md)"
        )
    for shots, number in long.items():
        if number:
            fewer = "give fewer examples (evaluation.shots_of) or " if shots else ""
            context.report.message(
                f"{name}: {number} of {len(items)} {shots}-shot prompts are longer than the model's "
                f"{context.config.model.context_length} tokens and lose their beginning; {fewer}raise "
                "model.context_length"
            )
    return {
        "items": len(items),
        "choices": choices,
        "crossed_items": sum(item.crossing > 0 for item in items),
        "crossed_choices": crossed,
        "long_prompts": {str(shots): number for shots, number in long.items()},
    }


def _cut(context: StageContext, cutter: "PromptCutter", task: str, file: str) -> list[ItemTokens]:
    delimiter = read_config(context.inputs["tasks"], task)["target_delimiter"]
    records = read_records(context.inputs["tasks"] / file)
    items: list[ItemTokens] = []
    for number, record in enumerate(records):
        items.append(cutter.item(record, delimiter, (task, number)))
        if len(items) % _REPORT_ITEMS == 0:
            context.report.progress(len(items), len(records), unit="items", doing=f"cutting prompts of {task}")
    return items


def _long_prompts(
    context: StageContext, cutter: "PromptCutter", task: str, items: Sequence[ItemTokens]
) -> dict[int, int]:
    """Shots -> items whose prompt is longer than the model's context."""
    numbers, length = sorted(set(context.config.evaluation.task_shots(task))), context.config.model.context_length
    config = read_config(context.inputs["tasks"], task)
    around, before = (
        cutter.tokens(config.get("fewshot_delimiter", "\n\n")),
        cutter.tokens(config.get("description", "")),
    )
    shown = _cut(context, cutter, task, f"{task}.fewshot.jsonl") if max(numbers) else []
    mean = sum(example.tokens + around for example in shown) / max(1, len(shown))
    # The last token of an answer is predicted and not read.
    return {shots: sum(before + shots * mean + item.tokens - 1 > length for item in items) for shots in numbers}


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
        encode, eod_id = self._tokenizer.encode, self._tokenizer.eod_id
        cut = [encode_choices(encode, eod_id, *texts) for texts in _texts(record, delimiter)]
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
