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


STATISTICS = "context_statistics"


def keys(config: RunConfig, tmp_path: object) -> dict[str, str]:
    return {name: node.key for name, node in build_graph(config, tmp_path).items()}  # type: ignore[arg-type]


def changed(tmp_path: object, *arguments: str, base: tuple[str, ...] = ()) -> set[str]:
    before, after = keys(configured(*base), tmp_path), keys(configured(*base, *arguments), tmp_path)
    return {name for name in after if before.get(name) != after[name]}


def test_execution_fields_never_change_a_key(tmp_path: object) -> None:
    overrides = ("engine.workers=3", "training.micro_batch=4", "evaluation.batch_tokens=7", "root=elsewhere")
    searched = ("neighbours.device=cpu", "factors=[duplicates]")
    placed = ("tracking.uri=http://localhost:1", "training.device=cpu")
    assert changed(tmp_path, *overrides, *searched, *placed, base=("ordering=in_context",)) == set()


def test_an_encoder_leaves_corpus_vocabulary_and_order_alone(tmp_path: object) -> None:
    assert changed(tmp_path, "encoder=longest_first") == {"tokens", "contexts", "prompts", "training", "evaluation"}


ORDERED = {"order", "contexts", "training", "evaluation"}
NEIGHBOURS = {"embeddings", "neighbours"}


@pytest.mark.parametrize(
    ("ordering", "needed"),
    [
        ("sequential", set()),
        ("nn", NEIGHBOURS),
        ("cluster", {"embeddings"}),
        ("in_context", NEIGHBOURS),
        ("in_context_released", NEIGHBOURS),
        ("lexical", {"lexical_neighbours"}),
    ],
)
def test_an_ordering_makes_what_it_needs_and_no_tokens_again(tmp_path: object, ordering: str, needed: set[str]) -> None:
    assert changed(tmp_path, f"ordering={ordering}", "duplicates=off") == needed | ORDERED


@pytest.mark.parametrize(("duplicates", "needed"), [("exact", set()), ("minhash", set()), ("embedding", NEIGHBOURS)])
def test_removing_duplicates_leaves_the_tokens_alone(tmp_path: object, duplicates: str, needed: set[str]) -> None:
    assert changed(tmp_path, f"duplicates={duplicates}") == needed | {"duplicates"} | ORDERED


def test_an_embedder_and_its_neighbours_decide_the_order_alone(tmp_path: object) -> None:
    base = ("ordering=in_context", "duplicates=embedding")
    searched = {"neighbours", "duplicates"} | ORDERED
    assert changed(tmp_path, "embedder.dimensions=64", base=base) == {"embeddings"} | searched
    assert changed(tmp_path, "neighbours.retrieved=30", base=base) == searched
    assert changed(tmp_path, "neighbours.shard_documents=1000", base=base) == searched
    assert changed(tmp_path, "duplicates.threshold=0.9", base=base) == {"duplicates"} | ORDERED
    assert changed(tmp_path, "ordering.neighbours=10", base=base) == ORDERED


def test_lexical_neighbours_depend_on_their_own_settings_alone(tmp_path: object) -> None:
    base, found = ("ordering=lexical", "duplicates=minhash"), {"lexical_neighbours"} | ORDERED
    assert changed(tmp_path, "ordering.query_terms=32", base=base) == found
    assert changed(tmp_path, "ordering.neighbours=10", base=base) == found
    assert changed(tmp_path, "duplicates.threshold=0.7", base=base) == {"duplicates"} | ORDERED
    assert changed(tmp_path, "embedder.dimensions=64", "neighbours.retrieved=30", base=base) == set()


@pytest.mark.parametrize("ordering", ["standard", "sequential"])
def test_groups_that_a_run_does_not_use_change_no_key(tmp_path: object, ordering: str) -> None:
    unused = ("embedder.dimensions=64", "neighbours.retrieved=30", "neighbours.recall=0.9")
    assert changed(tmp_path, *unused, base=(f"ordering={ordering}",)) == set()
    assert changed(tmp_path, "neighbours.retrieved=30", base=("ordering=cluster",)) == set()


@pytest.mark.parametrize(
    ("overrides", "measured"),
    [
        (("packing=best_fit",), True),
        (("packing=one_document",), True),
        (("packing.attention=document",), False),
        (("packing.shuffle=none",), False),
        (("packing.stretch_bytes=4KB",), False),
    ],
)
def test_a_packing_changes_only_what_follows(tmp_path: object, overrides: tuple[str, ...], measured: bool) -> None:
    found = changed(tmp_path, *overrides, base=("ordering=in_context",))
    assert found == {"training", "evaluation"} | ({"contexts"} if measured else set())


@pytest.mark.parametrize("packing", ["concatenate", "best_fit", "one_document"])
def test_contexts_that_begin_with_an_end_of_document_say_so_in_their_identity(tmp_path: Path, packing: str) -> None:
    node = build_graph(configured(f"packing={packing}"), tmp_path)["contexts"]
    assert node.identity["identity"].get("begin") == (None if packing == "concatenate" else "end_of_document")


@pytest.mark.parametrize("override", ["seeds.contexts=7", "model.width=96", "budget.tokens=9K"])
def test_what_contexts_hold_depends_on_no_seed_and_no_model(tmp_path: object, override: str) -> None:
    assert changed(tmp_path, override) == {"training", "evaluation"}


@pytest.mark.parametrize(
    ("overrides", "again"),
    [
        (("packing.attention=document",), False),
        (("packing.shuffle=none",), True),
        (("packing=best_fit",), True),
        (("packing=one_document",), True),
        (("model.context_length=32",), True),
        (("seed=7",), True),
    ],
)
def test_other_contexts_are_examined_again(tmp_path: Path, overrides: tuple[str, ...], again: bool) -> None:
    before, after = (
        build_graph(configured("ordering=sequential", *added), tmp_path, targets=(STATISTICS,))[STATISTICS].key
        for added in ((), overrides)
    )
    assert (before != after) is again


def test_a_tokenizer_leaves_neighbours_and_order_alone(tmp_path: object) -> None:
    for ordering in ("in_context", "lexical"):
        found = changed(tmp_path, "tokenizer=scaffold_bpe", base=(f"ordering={ordering}",))
        assert found == {"vocabulary", "tokens", "contexts", "prompts", "training", "evaluation"}


def test_a_sequential_order_has_no_seed(tmp_path: object) -> None:
    assert changed(tmp_path, "seed=7", base=("ordering=sequential",)) == {"training", "evaluation"}


def test_a_seed_changes_only_order_and_what_follows(tmp_path: object) -> None:
    assert changed(tmp_path, "seed=7", base=("ordering=in_context",)) == ORDERED


def test_another_version_of_code_changes_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, stage = keys(configured(), tmp_path), STAGES["tokens"]
    later = dataclasses.replace(stage, code_version=stage.code_version + 1)
    monkeypatch.setattr(graph, "STAGES", {**STAGES, "tokens": later})
    after = keys(configured(), tmp_path)
    follows = {"tokens", "contexts", "prompts", "training", "evaluation"}
    assert {name for name in after if before[name] != after[name]} == follows


def test_more_shots_do_not_train_again(tmp_path: object) -> None:
    assert changed(tmp_path, "evaluation.shots=[0,3]") == {"tasks", "prompts", "evaluation"}


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


def test_every_field_of_every_group_is_documented() -> None:
    def walk(cls: type) -> None:
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            assert field.metadata["doc"], f"{cls.__name__}.{field.name}"

    walk(RunConfig)
    config = configured()
    values = [getattr(config, field.name) for field in dataclasses.fields(config)]
    for value in filter(dataclasses.is_dataclass, values):
        walk(type(value))


def scrolls(root: Path, *overrides: str) -> tuple[str, ...]:
    """Overrides that fine-tune on a task whose files are below `root`."""
    for split in ("train", "validation"):
        path = root / "qmsum" / f"{split}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n", encoding="utf-8")
    chosen = ("finetuning=scrolls", "finetuning.tasks=[qmsum]", "finetuning.answer_characters=32")
    return (*chosen, f"evaluation.data={root}", *overrides)


FINETUNING = {"finetuning_data", "finetuning"}


def test_fine_tuning_adds_its_stages_and_leaves_all_others_alone(tmp_path: Path) -> None:
    assert changed(tmp_path, *scrolls(tmp_path)) == FINETUNING
    assert list(keys(configured(), tmp_path))[-1] == "evaluation"
    with_it = list(keys(configured(*scrolls(tmp_path)), tmp_path))
    assert with_it[0] == "finetuning_data" and with_it[-1] == "finetuning"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("finetuning.learning_rate=1e-5", {"finetuning"}),
        ("finetuning.epochs=2", {"finetuning"}),
        ("finetuning.document_characters=100", FINETUNING),
        ("finetuning.limit=3", FINETUNING),
        ("finetuning.source=hub", set()),
        ("evaluation.shots=[0,5]", {"tasks", "prompts", "evaluation"}),
    ],
)
def test_a_setting_of_fine_tuning_changes_only_its_stages(tmp_path: Path, override: str, expected: set[str]) -> None:
    assert changed(tmp_path, override, base=scrolls(tmp_path)) == expected


def test_runs_that_share_their_fine_tuning_but_not_their_scores_are_two(tmp_path: Path) -> None:
    shots = [scrolls(tmp_path, f"evaluation.shots=[{number}]") for number in (0, 1)]
    graphs = [build_graph(configured(*overrides), tmp_path) for overrides in (*shots, ("evaluation.shots=[0]",))]
    assert graphs[0]["finetuning"].key == graphs[1]["finetuning"].key
    assert len({run_id(nodes) for nodes in graphs}) == 3


def test_tasks_and_prompts_are_made_before_anything_is_trained(tmp_path: object) -> None:
    order = list(keys(configured("ordering=in_context"), tmp_path))
    assert order.index("tasks") < order.index("prompts") < order.index("training") < order.index("evaluation")
    assert "prompts" not in keys(configured("evaluation.tasks=[]"), tmp_path)


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
