"""Items of tasks, the benchmarks that they come from, and the files of a task.

A language model answers by the probability of a text, or by writing one. A task is lm-eval's YAML with the scored items
and the examples as JSON lines beside it. Paths in the YAML are relative, so an artefact may be moved; lm-eval itself
can use it from inside the directory.

Examples for prompts are kept apart from the items that are scored. Where a training split lies beside the scored file,
examples come from it and the whole scored split counts. Otherwise some items are split off by a digest of their
content. Either way no scored item equals an example.
"""

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from paribus.errors import DataError


@dataclass(frozen=True)
class _Question:
    id: str
    """Stable name: the record's place in its file, or the document the item was made from."""

    def digest(self) -> str:
        """Hexadecimal digest of the question, whatever its id; equal questions have equal digests."""
        _, *content = asdict(self).values()
        return text_digest(json.dumps(content, ensure_ascii=False))


@dataclass(frozen=True)
class Item(_Question):
    """A multiple-choice question: which text follows the prompt."""

    query: str
    """The prompt, without the answer."""
    choices: tuple[str, ...]
    """Possible answers; the task's delimiter joins them to the prompt."""
    gold: int
    """Index of the right choice."""


@dataclass(frozen=True)
class BlankItem(_Question):
    """A multiple-choice question whose choices fill a blank: after which context is the ending most probable.

    Trinh and Le 2018 call it partial scoring (arXiv 1806.02847).
    """

    contexts: tuple[str, ...]
    """The text up to the blank and each choice in it."""
    ending: str
    """The text after the blank."""
    gold: int
    """Index of the right context."""


@dataclass(frozen=True)
class TextItem(_Question):
    """One text to predict after a prompt."""

    query: str
    """The prompt."""
    target: str
    """The text that follows, with the whitespace before it."""


@dataclass(frozen=True)
class AnswerItem(_Question):
    """A question whose answer the model writes."""

    query: str
    """The prompt, without the answer."""
    answers: tuple[tuple[str, ...], ...]
    """Accepted answers, the one that examples show first; each is one span of text, or several (DROP)."""


AnyItem = Item | BlankItem | TextItem | AnswerItem


@dataclass(frozen=True)
class ItemSet:
    """The items of a task, all of one class: those that are scored, and those that examples are drawn from."""

    evaluated: Sequence[AnyItem]
    fewshot: Sequence[AnyItem]
    fewshot_source: str
    """Source of the examples, for the record."""

    def chance(self) -> float:
        """Expected accuracy of a blind guess; 0 where the answer is not chosen among a few."""
        options = [len(getattr(item, "choices", getattr(item, "contexts", ()))) for item in self.evaluated]
        return sum(1 / number if number else 0.0 for number in options) / len(options)


def text_digest(text: str) -> str:
    """A hexadecimal digest that orders texts evenly, whatever corpus they come from."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_records(path: Path, records: Iterable[Any]) -> None:
    """One record a line, as JSON."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_records(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


Fields = Mapping[str, Any]
Reader = Callable[[str, Fields], AnyItem]
"""Function from an item's name and a record to the item; DataError where the record has another schema."""


@dataclass(frozen=True)
class BenchmarkPrompt:
    """Parts that join the texts of a task into a prompt, and the source of the prompt."""

    source: str
    """Kind of the items, and where their prompt comes from."""
    target_delimiter: str = " "
    """Between prompt and answer."""
    fewshot_delimiter: str = "\n\n"
    """After each example."""
    description: str = ""
    """Before everything."""


@dataclass(frozen=True)
class Hub:
    """A data set of the Hugging Face hub whose splits have the same names as here."""

    path: str
    """owner/name, as in lm-eval's own task."""
    name: str | None = None
    """The data set's configuration."""
    train: bool = True
    """True if there is a training split, which is fetched too."""
    train_path: str | None = None
    """owner/name of the data set with the training split, where that is another one."""
    examples: int | None = None
    """Number of its first records, which must be mixed, to fetch where it is very large; None for all of it."""
    files: str | None = None
    """Pattern of the files of a `{split}`, where the others are too large to be fetched beside it."""


@dataclass(frozen=True)
class Generation:
    """The end of a written answer, and its comparison with the accepted ones."""

    until: tuple[str, ...]
    """Stop strings."""
    measure: Literal["lm_eval", "squad", "drop"]
    """lm_eval: its exact match alone; squad, drop: exact match and F1 of the official scripts (`rows`)."""
    exact_match: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments of lm-eval's exact match."""
    max_tokens: int = 64
    """Largest number of tokens; answers are a few words."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark read from `<data>/<directory>/<split>.jsonl`, plain, `.gz` or `.zst`."""

    name: str
    split: str
    """Split that is scored, as lm-eval does: test where its labels are public, else validation."""
    item: Reader
    """Reads one record."""
    prompt: BenchmarkPrompt
    """Parts of the prompt, as lm-eval's task of that name puts them together."""
    hub: Hub | None = None
    """Hub data set with the records; None where none has them in a form that is read here."""
    generation: Generation | None = None
    """Rules of benchmarks whose answer is written."""
    parent: str | None = None
    """Directory, where it is not the name."""
    also: tuple[str, ...] = ()
    """Metrics of lm-eval for its choices besides accuracy."""

    @property
    def directory(self) -> str:
        """Name of the directory that holds its files."""
        return self.parent or self.name


def text(record: Fields, field: str) -> str:
    """A field that must be a string with something in it."""
    value = entry(record, field)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"field `{field}` must be text, not {value!r}")
    return value


def texts(record: Fields, field: str, least: int = 2) -> tuple[str, ...]:
    """A field that must be a list of at least `least` non-empty strings."""
    value = entry(record, field)
    if not isinstance(value, list) or len(value) < least or not all(isinstance(c, str) and c.strip() for c in value):
        number = {1: "one or more texts", 2: "two or more texts"}.get(least, f"{least} or more texts")
        raise DataError(f"field `{field}` must be a list of {number}, not {value!r}")
    return tuple(value)


def accepted_answers(record: Fields, field: str) -> tuple[tuple[str], ...]:
    """Accepted answers of one part each, from a field that must be a list of one or more non-empty strings."""
    return tuple((answer,) for answer in texts(record, field, least=1))


def index(record: Fields, field: str, choices: tuple[str, ...], first: int = 0) -> int:
    """A field that must be the number of one of `choices`, counted from `first`; its index from 0."""
    value = entry(record, field)
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    last = first + len(choices) - 1
    if isinstance(number, bool) or not isinstance(number, int) or not first <= number <= last:
        raise DataError(f"field `{field}` must be an index from {first} to {last}, not {value!r}")
    return number - first


def entry(record: Fields, field: str) -> Any:
    """A field that must be there."""
    if field not in record:
        raise DataError(f"field `{field}` is missing; the record has {', '.join(sorted(record)) or 'no fields'}")
    return record[field]


def block(record: Fields, field: str, content: str) -> Fields:
    """A field that must be a mapping, which holds `content`."""
    value = entry(record, field)
    if not isinstance(value, Mapping):
        raise DataError(f"field `{field}` must hold {content}, not {value!r}")
    return value


def lettered(record: Fields) -> tuple[tuple[str, ...], int]:
    """Choices and the index of the right one from `choices` (text and label lists) and `answerKey` (a label)."""
    lists = block(record, "choices", "the lists text and label")
    choices, labels = texts(lists, "text"), texts(lists, "label")
    answer = text(record, "answerKey").strip()
    if len(labels) != len(choices) or answer not in labels:
        raise DataError(f"field `answerKey` must be one of {len(choices)} labels {list(labels)}, not {answer!r}")
    return choices, labels.index(answer)


def string(record: Fields, field: str) -> str:
    """A field that must be a string, which may be empty."""
    value = entry(record, field)
    if not isinstance(value, str):
        raise DataError(f"field `{field}` must be text, not {value!r}")
    return value


def literal(record: Fields, field: str) -> Any:
    """A field that may be written as a Python literal in a string, as some hub data sets have lists."""
    value = entry(record, field)
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        raise DataError(f"field `{field}` must be a list, not {value!r}") from error


TRAINING_EXAMPLES = 1024
"""Items of a training split that examples are drawn from; as many as a prompt has where that is more."""
SPLIT_OFF_EXAMPLES = 64
"""Items that are split off from the scored ones; as many as a prompt has where that is more."""


def split_pool(items: Sequence[AnyItem], training: Sequence[AnyItem] | None, shots: int) -> ItemSet:
    """Scored items in file order and those that prompts of at most `shots` examples draw from, by smallest digests."""
    if training is not None:
        scored = {item.digest() for item in items}
        unscored = {item.digest(): item for item in reversed(training) if item.digest() not in scored}
        return ItemSet(items, [unscored[key] for key in sorted(unscored)[: training_size(shots)]], "train split")
    distinct = {item.digest(): item for item in reversed(items)}
    examples = {key: distinct[key] for key in sorted(distinct)[: split_off(len(distinct), shots)]}
    scored_items = [item for item in items if item.digest() not in examples]
    return ItemSet(scored_items, [*examples.values()], "split off from the scored items, of which a quarter at most")


def training_size(shots: int) -> int:
    """The most items of a training split that prompts of `shots` examples draw from."""
    return max(TRAINING_EXAMPLES, shots)


def split_off(distinct: int, shots: int) -> int:
    """Number of `distinct` items to split off for prompts of `shots` examples: a quarter at most."""
    return min(max(SPLIT_OFF_EXAMPLES, shots), distinct // 4)


ACCURACIES = ("acc", "acc_norm", "acc_bytes")
"""lm-eval's accuracies of the choice of highest log-probability: in all, a character, or a UTF-8 byte."""
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
    import yaml  # type: ignore[import-untyped]  # imported late: light commands need this module, and not YAML

    write_records(directory / f"{name}.jsonl", map(asdict, items.evaluated))
    write_records(directory / f"{name}.fewshot.jsonl", map(asdict, items.fewshot))
    config = _task_config(name, items, prompt, generation) | dict(changes)
    content = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    (directory / f"{name}.yaml").write_text(content, encoding="utf-8")


def _task_config(name: str, items: ItemSet, prompt: BenchmarkPrompt, generation: Generation | None) -> dict[str, Any]:
    form = _item_form(items, generation)
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


def _item_form(items: ItemSet, generation: Generation | None) -> dict[str, Any]:
    match items.evaluated[0]:
        case Item():
            return _choice_form("query", "choices", "gold", *ACCURACIES)
        case BlankItem():  # an integer as text tells lm-eval that the choices are contexts
            return _choice_form("gold", "contexts", "ending", "acc")
        case TextItem():
            perplexity = {"metric": "perplexity", "aggregation": "perplexity", "higher_is_better": False}
            return {
                "output_type": "loglikelihood",
                "doc_to_text": "query",
                "doc_to_target": "target",
                "metric_list": [perplexity, _metric("acc")],
            }
        case AnswerItem():
            assert generation is not None
            filters = [{"function": "remove_whitespace"}, {"function": "take_first"}]
            return {
                "output_type": "generate_until",
                "doc_to_text": "query",
                "doc_to_target": SPANS_JOINED,
                "generation_kwargs": {
                    "until": list(generation.until),
                    "max_gen_toks": generation.max_tokens,
                    "do_sample": False,
                },
                "filter_list": [{"name": "remove_whitespace", "filter": filters}],
                "metric_list": [_metric("exact_match") | dict(generation.exact_match)],
            }


def _choice_form(text: str, choice: str, target: str, *metrics: str) -> dict[str, Any]:
    return {
        "output_type": "multiple_choice",
        "doc_to_text": text,
        "doc_to_choice": choice,
        "doc_to_target": target,
        "metric_list": [_metric(name) for name in metrics],
    }


def choice_metrics(also: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The metrics of items with choices, and those of lm-eval that `also` names."""
    return [_metric(name) for name in (*ACCURACIES, *also)]


def _metric(name: str) -> dict[str, Any]:
    return {"metric": name, "aggregation": "mean", "higher_is_better": True}


def read_task_config(directory: Path, name: str) -> dict[str, Any]:
    """The task's YAML. Raises DataError where it cannot be read."""
    import yaml

    path = directory / f"{name}.yaml"
    try:
        config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path}: no task that could be read ({error})") from error
    return config
