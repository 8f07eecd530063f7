"""What decides an artefact's key, and what must not."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.fields import config_class, identity
from paribus.config.groups.model import CheckpointStart
from paribus.config.groups.ordering import ConcatenatePacking
from paribus.config.identity import canonical, digest, to_plain
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run
from paribus.pipeline import graph
from paribus.pipeline.graph import STAGES, build_graph
from paribus.pipeline.root import run_id
from paribus.training.data import recipe_fingerprint
from paribus.training.start import training_seeds
from support.run_config import run_config


def configured(*arguments: str) -> RunConfig:
    return compose_command(parse(["scale=tiny", *arguments])).jobs[0].config


ORDERED = {"order", "contexts", "training", "evaluation"}
ENCODED = {"tokens", "contexts", "prompts", "training", "evaluation"}
TRAINED = {"training", "evaluation"}
NEIGHBOURS = {"embeddings", "neighbours"}
FINETUNING = {"finetuning_data", "finetuning"}
IN_CONTEXT, LEXICAL = "ordering=in_context duplicates=embedding", "ordering=lexical duplicates=minhash"
EXECUTION = (
    "engine.workers=3 training.micro_batch=4 evaluation.batch_tokens=7 root=elsewhere neighbours.device=cpu "
    "factors=[duplicates] tracking.uri=http://localhost:1 training.device=cpu"
)
UNUSED = "embedder.dimensions=64 neighbours.retrieved=30 neighbours.recall=0.9"
CHANGES: tuple[tuple[str, str, set[str]], ...] = (
    ("ordering=in_context", EXECUTION, set()),
    ("", "encoder=longest_first", ENCODED),
    ("ordering=in_context", "tokenizer=scaffold_bpe", {"vocabulary"} | ENCODED),
    ("ordering=lexical", "tokenizer=scaffold_bpe", {"vocabulary"} | ENCODED),
    # An ordering makes what it needs, and no tokens again.
    ("", "ordering=sequential duplicates=off", ORDERED),
    ("", "ordering=nn duplicates=off", NEIGHBOURS | ORDERED),
    ("", "ordering=cluster duplicates=off", {"embeddings"} | ORDERED),
    ("", "ordering=in_context duplicates=off", NEIGHBOURS | ORDERED),
    ("", "ordering=in_context_released duplicates=off", NEIGHBOURS | ORDERED),
    ("", "ordering=lexical duplicates=off", {"lexical_neighbours"} | ORDERED),
    ("", "duplicates=exact", {"duplicates"} | ORDERED),
    ("", "duplicates=minhash", {"duplicates"} | ORDERED),
    ("", "duplicates=embedding", NEIGHBOURS | {"duplicates"} | ORDERED),
    (IN_CONTEXT, "embedder.dimensions=64", NEIGHBOURS | {"duplicates"} | ORDERED),
    (IN_CONTEXT, "neighbours.retrieved=30", {"neighbours", "duplicates"} | ORDERED),
    (IN_CONTEXT, "neighbours.shard_documents=1000", {"neighbours", "duplicates"} | ORDERED),
    (IN_CONTEXT, "duplicates.threshold=0.9", {"duplicates"} | ORDERED),
    (IN_CONTEXT, "ordering.neighbours=10", ORDERED),
    (LEXICAL, "ordering.query_terms=32", {"lexical_neighbours"} | ORDERED),
    (LEXICAL, "ordering.neighbours=10", {"lexical_neighbours"} | ORDERED),
    (LEXICAL, "duplicates.threshold=0.7", {"duplicates"} | ORDERED),
    (LEXICAL, UNUSED, set()),
    ("ordering=standard", UNUSED, set()),
    ("ordering=sequential", UNUSED, set()),
    ("ordering=cluster", "neighbours.retrieved=30", set()),
    ("ordering=in_context", "packing=best_fit", {"contexts"} | TRAINED),
    ("ordering=in_context", "packing=one_document", {"contexts"} | TRAINED),
    ("ordering=in_context", "packing.attention=document", TRAINED),
    ("ordering=in_context", "packing.shuffle=none", TRAINED),
    ("ordering=in_context", "packing.stretch_bytes=4KB", TRAINED),
    # What contexts hold depends on no seed and no model.
    ("", "seeds.contexts=7", TRAINED),
    ("", "model.width=96", TRAINED),
    ("", "budget.tokens=9K", TRAINED),
    ("ordering=sequential", "seed=7", TRAINED),
    ("ordering=in_context", "seed=7", ORDERED),
    ("", "evaluation.shots=[0,3]", {"tasks", "prompts", "evaluation"}),
)
"""The base, what is changed of it, and the stages whose keys change."""
FINETUNED: tuple[tuple[str, set[str]], ...] = (
    ("finetuning.learning_rate=1e-5", {"finetuning"}),
    ("finetuning.epochs=2", {"finetuning"}),
    ("finetuning.document_characters=100", FINETUNING),
    ("finetuning.limit=3", FINETUNING),
    ("finetuning.source=hub", set()),
    ("evaluation.shots=[0,5]", {"tasks", "prompts", "evaluation"}),
)


def keys(config: RunConfig, cache: Path) -> dict[str, str]:
    return {name: node.key for name, node in build_graph(config, cache).items()}


def changed(cache: Path, *overrides: str, base: tuple[str, ...] = ()) -> set[str]:
    """Stages whose keys `overrides` change."""
    before, after = keys(configured(*base), cache), keys(configured(*base, *overrides), cache)
    return {name for name in after if before.get(name) != after[name]}


def test_a_setting_changes_the_keys_of_its_stages_and_of_what_they_feed_alone(tmp_path: Path) -> None:
    expected = {(base, words): stages for base, words, stages in CHANGES}
    assert {case: changed(tmp_path, *case[1].split(), base=tuple(case[0].split())) for case in expected} == expected


def scrolls(root: Path, *overrides: str) -> tuple[str, ...]:
    """Overrides that fine-tune on a task whose files are below `root`."""
    for split in ("train", "validation"):
        path = root / "qmsum" / f"{split}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n", encoding="utf-8")
    chosen = ("finetuning=scrolls", "finetuning.tasks=[qmsum]", "finetuning.answer_characters=32")
    return (*chosen, f"evaluation.data={root}", *overrides)


def test_a_setting_of_fine_tuning_changes_only_its_stages(tmp_path: Path) -> None:
    base = scrolls(tmp_path)
    assert {words: changed(tmp_path, words, base=base) for words, _ in FINETUNED} == dict(FINETUNED)
    assert changed(tmp_path, *base) == FINETUNING
    names = list(keys(configured(*base), tmp_path))
    assert (names[0], names[-1]) == ("finetuning_data", "finetuning")


def test_runs_that_share_their_fine_tuning_but_not_their_scores_are_two(tmp_path: Path) -> None:
    shots = [scrolls(tmp_path, f"evaluation.shots=[{number}]") for number in (0, 1)]
    graphs = [build_graph(configured(*overrides), tmp_path) for overrides in (*shots, ("evaluation.shots=[0]",))]
    assert graphs[0]["finetuning"].key == graphs[1]["finetuning"].key
    assert len({run_id(nodes) for nodes in graphs}) == 3


def test_tasks_and_prompts_are_made_before_anything_is_trained(tmp_path: Path) -> None:
    order = list(keys(configured("ordering=in_context"), tmp_path))
    assert order.index("tasks") < order.index("prompts") < order.index("training") < order.index("evaluation")
    assert "prompts" not in keys(configured("evaluation.tasks=[]"), tmp_path)


def test_statistics_of_contexts_are_counted_again_where_contexts_differ(tmp_path: Path) -> None:
    def key(*overrides: str) -> str:
        config = configured("ordering=sequential", *overrides)
        return build_graph(config, tmp_path, targets=("context_statistics",))["context_statistics"].key

    others = ("packing.shuffle=none", "packing=best_fit", "packing=one_document", "model.context_length=32", "seed=7")
    assert len({key(), *map(key, others)}) == 1 + len(others)
    assert key("packing.attention=document") == key()


def test_contexts_that_begin_with_an_end_of_document_say_so_in_their_identity(tmp_path: Path) -> None:
    begins = {
        packing: build_graph(configured(f"packing={packing}"), tmp_path)["contexts"].identity["identity"].get("begin")
        for packing in ("concatenate", "best_fit", "one_document")
    }
    assert begins == {"concatenate": None, "best_fit": "end_of_document", "one_document": "end_of_document"}


def test_another_version_of_code_changes_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, stage = keys(configured(), tmp_path), STAGES["tokens"]
    later = dataclasses.replace(stage, code_version=stage.code_version + 1)
    monkeypatch.setattr(graph, "STAGES", {**STAGES, "tokens": later})
    after = keys(configured(), tmp_path)
    assert {name for name in after if before[name] != after[name]} == ENCODED


def test_the_digest_is_the_same_in_any_key_order() -> None:
    assert digest({"a": 1, "b": [1.5, None, "é"]}) == digest({"b": [1.5, None, "é"], "a": 1})
    assert canonical({"b": "é", "a": True}) == '{"a":true,"b":"é"}'


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), math.nan, math.inf, {1: 2}])
def test_a_value_without_stable_serialization_raises(value: object) -> None:
    with pytest.raises(TypeError):
        digest(value)


def test_an_undeclared_field_is_an_error_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match="must be declared"):

        @config_class
        class Undeclared:
            declared: int = identity(1, doc="fine")
            forgotten: int = 2


def test_a_configuration_survives_its_own_json() -> None:
    config = configured("ordering=in_context", "tokenizer=scaffold_bpe", "budget=equal_text")
    assert build_run(to_plain(config)) == config


@pytest.mark.parametrize(
    ("groups", "drawn"),
    [
        ({}, {"weights", "contexts"}),
        ({"packing": ConcatenatePacking(shuffle="none")}, {"weights"}),
        ({"start": CheckpointStart(path="somewhere")}, {"contexts"}),
        ({"start": CheckpointStart(path="somewhere"), "packing": ConcatenatePacking(shuffle="none")}, set()),
    ],
)
def test_a_training_is_of_the_seeds_that_it_draws_by(groups: dict[str, Any], drawn: set[str], tmp_path: Path) -> None:
    """By others its key and its fingerprint would differ from those of a training that is equal to the last bit."""
    config = run_config(**groups)
    assert set(training_seeds(config)) == drawn
    assert STAGES["training"].identity(config)["seeds"] == dict.fromkeys(drawn, 0)
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    found = recipe_fingerprint(config, tokenizer)
    assert {name for name in found if name.startswith("seeds.")} == {f"seeds.{part}" for part in drawn}
