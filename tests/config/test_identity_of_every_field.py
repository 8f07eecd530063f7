"""Every field of every choice of every group, from the schema: if it is declared identity, it changes the keys of the
stages that own it and of what is made from them; if it is declared execution, it changes none."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from paribus.config.fields import EXECUTION, IDENTITY
from paribus.config.groups.evaluation import ScrollsFinetuning
from paribus.config.groups.model import ContinuedStart, EncoderDecoderModel
from paribus.config.groups.ordering import EmbeddingDuplicates, InContextOrdering, LexicalOrdering
from paribus.config.schema import RunConfig, dataclasses_of
from paribus.pipeline import graph
from paribus.pipeline.graph import STAGES, build_graph
from paribus.training.start import has_first
from support.run_config import run_config

OWNERS = {
    "corpus": {"corpus"},
    "pretokenizer": {"vocabulary"},
    "tokenizer": {"vocabulary"},
    "encoder": {"tokens"},
    "embedder": {"embeddings"},
    "neighbours": {"neighbours"},
    "duplicates": {"duplicates"},
    "ordering": {"order"},
    "ordering.query_terms": {"lexical_neighbours"},
    "ordering.saturation": {"lexical_neighbours"},
    "ordering.length_normalization": {"lexical_neighbours"},
    "packing": {"contexts", "context_statistics", "training"},
    "packing.attention": {"training"},
    "packing.shuffle": {"context_statistics", "training"},
    "packing.stretch_bytes": {"context_statistics", "training"},
    "model": {"training"},
    "model.context_length": {"training", "contexts", "context_statistics", "prompts"},
    "model.context_bytes": {"training", "contexts", "context_statistics", "prompts"},
    "start": {"training"},
    "start.tokens": {"first_training"},
    "budget": {"training"},
    "training": {"training"},
    "evaluation": {"tasks"},
    "evaluation.shots": {"tasks", "prompts", "evaluation"},
    "evaluation.shots_of": {"tasks", "prompts", "evaluation"},
    "evaluation.limit": {"tasks", "evaluation"},
    "evaluation.fewshot_seed": {"tasks", "evaluation"},
    "evaluation.last_checkpoints": {"evaluation"},
    "evaluation.average_checkpoints": {"evaluation"},
    "evaluation.translations": {"evaluation"},
    "evaluation.beams": {"evaluation"},
    "evaluation.clean_overlap": {"evaluation"},
    "evaluation.length_penalty": {"evaluation"},
    "evaluation.precision": {"evaluation", "finetuning"},
    "finetuning": {"finetuning"},
    "finetuning.tasks": {"finetuning_data"},
    "finetuning.answer_characters": {"finetuning_data"},
    "finetuning.document_characters": {"finetuning_data"},
    "finetuning.limit": {"finetuning_data"},
    "seed": {"order", "context_statistics", "training", "finetuning"},
    "seeds.weights": {"training"},
    "seeds.order": {"order"},
    "seeds.contexts": {"context_statistics", "training", "finetuning"},
    "seeds.dropout": {"training", "finetuning"},
}
"""The stages that a group, or a field of it, decides by itself; where one needs another, the first is enough."""
NAMES = {"evaluation.tasks": ("continuation", "boolq"), "finetuning.tasks": ("qmsum",)}
"""Values of fields that hold names, of which not every one exists."""


@dataclass(frozen=True)
class Case:
    """A field: where it is, the choice of the group it belongs to, and its declared role."""

    path: str
    role: str
    hint: Any
    group: str | None = None
    choice: type[Any] | None = None
    inside: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.choice.__name__}:{self.path}" if self.choice else self.path


def cases() -> Iterator[Case]:
    for field, hint in fields_of(RunConfig):
        classes = dataclasses_of(hint)
        if not classes:
            yield Case(field.name, field.metadata["role"], hint)
        for choice in classes:
            yield from cases_of(field.name, choice, choice, ())


def cases_of(group: str, choice: type[Any], cls: type[Any], inside: tuple[str, ...]) -> Iterator[Case]:
    for field, hint in fields_of(cls):
        path = ".".join((group, *inside, field.name))
        nested = dataclasses_of(hint)
        if not nested and field.name != "kind":
            yield Case(path, field.metadata["role"], hint, group, choice, inside)
        for block in nested:
            yield from cases_of(group, choice, block, (*inside, field.name))


def fields_of(cls: type[Any]) -> Iterator[tuple[Any, Any]]:
    hints = get_type_hints(cls, include_extras=True)
    return ((field, hints[field.name]) for field in dataclasses.fields(cls))


def filled(cls: type[Any], path: str = "") -> Any:
    """An instance of a choice whose required fields have some value."""
    values = {}
    for field, hint in fields_of(cls):
        if field.default is dataclasses.MISSING:
            values[field.name] = sample(hint)
        elif dataclasses_of(hint) and field.default is None:
            values[field.name] = filled(dataclasses_of(hint)[0])
    return cls(**values)


def sample(hint: Any, unlike: Any = None) -> Any:
    """A value of an annotated type that is not `unlike`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Annotated, UnionType, Union):
        return sample(next(argument for argument in arguments if argument is not type(None)), unlike)
    if origin is Literal:
        return next(value for value in arguments if value != unlike)
    if origin in (tuple, list):
        return origin([sample(arguments[0]), *(unlike or ())])
    if origin is dict:
        return {"name": sample(arguments[1])}
    plain = {bool: not unlike, int: (unlike or 1) + 1 if not isinstance(unlike, str) else 1}
    plain |= {float: 0.25 if unlike != 0.25 else 0.5, str: f"{unlike or 'some'} other", Any: "anything"}
    return plain[hint]


def base(case: Case) -> RunConfig:
    """A run that needs as many stages as a run can, with the case's choice."""
    groups: dict[str, Any] = {
        "ordering": InContextOrdering(),
        "duplicates": EmbeddingDuplicates(),
        "finetuning": ScrollsFinetuning(),
    }
    if case.path == "seeds.dropout":  # only a model with dropout draws by it
        groups |= {"model": dataclasses.replace(filled(EncoderDecoderModel), dropout=0.1)}
    if case.group and case.choice:
        groups |= {case.group: filled(case.choice)}
    if case.choice is ContinuedStart:  # of the amounts the one of the budget's kind is given
        groups |= {"start": ContinuedStart(tokens=7)}
    return run_config(**groups)


def changed(config: RunConfig, case: Case) -> RunConfig:
    """The same run with another value of the one field."""

    def replaced(block: Any, parts: tuple[str, ...]) -> Any:
        name, *rest = parts
        before = getattr(block, name)
        after = replaced(before, tuple(rest)) if rest else NAMES.get(case.path, sample(case.hint, before))
        assert after != before, case
        return dataclasses.replace(block, **{name: after})

    return replaced(config, tuple(case.path.split(".")))  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def without_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys by the configuration alone: files that a path names enter by their contents, which no field changes."""
    stages = {name: dataclasses.replace(stage, outside=None) for name, stage in STAGES.items()}
    monkeypatch.setattr(graph, "STAGES", stages)


def nodes_of(config: RunConfig, cache: Path) -> dict[str, Any]:
    absent = [] if isinstance(config.ordering, LexicalOrdering) else ["lexical_neighbours"]
    absent += [] if has_first(config) else ["first_training"]
    absent += [] if isinstance(config.finetuning, ScrollsFinetuning) else ["finetuning_data", "finetuning"]
    return build_graph(config, cache, targets=[name for name in STAGES if name not in absent])


def made_from(stages: set[str], nodes: dict[str, Any]) -> set[str]:
    """Stages and everything that is made from them, by the inputs of the graph."""
    reached = stages & nodes.keys()
    for name, node in nodes.items():
        if reached & set(node.inputs):
            reached |= {name}
    return reached


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_field_changes_the_keys_of_its_stages_exactly_if_it_is_identity(case: Case, tmp_path: Path) -> None:
    config = base(case)
    before, after = nodes_of(config, tmp_path), nodes_of(changed(config, case), tmp_path)
    differing = {name for name in before.keys() | after.keys() if key(before, name) != key(after, name)}
    assert case.role in (IDENTITY, EXECUTION)
    owners = OWNERS.get(case.path, OWNERS.get(case.path.split(".")[0], set())) if case.role == IDENTITY else set()
    if isinstance(config.ordering, LexicalOrdering) and case.path == "ordering.neighbours":
        owners = owners | {"lexical_neighbours"}
    assert differing == made_from(owners, after)
    assert bool(differing) is (case.role == IDENTITY)


def key(nodes: dict[str, Any], name: str) -> str | None:
    return nodes[name].key if name in nodes else None


CHOICES = [
    (field.name, one, other)
    for field, hint in fields_of(RunConfig)
    if field.metadata["role"] == IDENTITY
    for one in dataclasses_of(hint)
    for other in dataclasses_of(hint)
    if one is not other
]


@pytest.mark.parametrize(("group", "one", "other"), CHOICES)
def test_another_choice_changes_keys_of_stages(group: str, one: type[Any], other: type[Any], tmp_path: Path) -> None:
    graphs = [nodes_of(base(Case(group, IDENTITY, None, group, choice)), tmp_path) for choice in (one, other)]
    for stage in OWNERS[group]:
        assert key(graphs[0], stage) != key(graphs[1], stage)


KEYS = """
import json, os, socket, sys, time
from pathlib import Path
socket.gethostname = lambda: sys.argv[2]
from paribus.config.arguments import parse
from paribus.checks import compose_command
from paribus.pipeline.graph import build_graph
time.tzset()
overrides = ["scale=tiny", "corpus=files", f"corpus.paths=[{sys.argv[1]}]", "ordering=in_context", *sys.argv[3:]]
config = compose_command(parse(overrides)).jobs[0].config
print(json.dumps({name: node.key for name, node in build_graph(config, Path("cache")).items()}))
"""
PLACES = (
    ({"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"}, "one", ("root=here", "seed=3", "training.beta2=0.9")),
    ({"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu"}, "other",
     ("training.beta2=0.9", "seed=3", "root=/elsewhere", "engine.workers=7")),
    ({"PYTHONHASHSEED": "4242", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/Lima", "PYTHONUTF8": "0"}, "node-7",
     ("seed=3", "training.beta2=0.90", "tracking.uri=http://localhost:1")),
)  # fmt: skip


def test_keys_are_the_same_for_any_order_hash_seed_host_directory_store_locale_and_time_zone(tmp_path: Path) -> None:
    found = []
    for number, (environment, host, overrides) in enumerate(PLACES):
        directory = tmp_path / f"place {number}"
        directory.mkdir()
        (directory / "texts.jsonl").write_text('{"text": "Straße, ıİ, 河流"}\n', encoding="utf-8")
        path = ("texts.jsonl", f"'{directory}/texts.jsonl'", "./texts.jsonl")[number]
        command = [sys.executable, "-c", KEYS, path, host, *overrides]
        done = subprocess.run(
            command, cwd=directory, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1] == found[2] and len(found[0]) == 12
