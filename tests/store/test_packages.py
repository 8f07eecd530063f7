"""Which packages, in which stage, keep runs from standing in one table."""

import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.compose import Composition
from paribus.pipeline.graph import STAGES
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.results import collect, environment
from paribus.pipeline.root import OutputRoot
from paribus.reporting.equality import differing as differing_fields
from paribus.reporting.fairness import differences
from paribus.reporting.runs import FinishedRun
from paribus.store.packages import DECIDING, HARMLESS, recorded
from paribus.store.provenance import Code

NO_STAGES: dict[str, dict[str, Any]] = {"code_versions": {}, "stages": {"corpus": {"key": "a"}}}
PINNED = dict.fromkeys(recorded(), "1.0")
SEEDS = ("-m", "seed=0,1", "scale=tiny", "corpus=pydocs_small", "ordering=in_context", "tracking=none")
Change = Callable[[str, int], dict[str, str]]
"""From a stage and the number of the run that made it to the versions that are others there."""


def sweep(root: Path) -> tuple[Composition, list[PreparedRun]]:
    composition = compose_command(parse([*SEEDS, f"root={root}"]))
    return composition, prepare_runs(composition)


def record(runs: list[PreparedRun], change: Change) -> None:
    """Each run as recorded, with artefacts that say what they were made with; the first run made what both share."""
    for number, run in enumerate(runs):
        layout = OutputRoot.of(run.job.config)
        recorder = RunRecord(run.job.config, run.nodes, layout)
        for name, node in run.nodes.items():
            held = layout.store.claim(name, node.key)
            assert held is not None
            with held:
                layout.store.empty_output(held, name, node.key)
                if layout.store.find(name, node.key) is None:
                    layout.store.publish(held, name, node.key, made_by(change(name, number)))
            artifact = layout.store.find(name, node.key)
            assert artifact is not None
            recorder.stage(node, artifact, "made", 1.0)
        recorder.finish(None)


def made_by(changed: dict[str, str]) -> dict[str, Any]:
    versions = PINNED | {name: version for name, version in changed.items() if name != "python"}
    return {
        "result": {"computed_on": ["cpu in fp32"]},
        "provenance": {"packages": versions, "python": changed.get("python", "3.11.7")},
    }


def compared(root: Path, change: Change) -> list[FinishedRun]:
    _, runs = sweep(root)
    record(runs, change)
    records, missing = collect(runs, [], OutputRoot.of(runs[0].job.config))
    assert missing == []
    return records


def differing(root: Path, changed: dict[str, str]) -> list[str]:
    """What keeps two seeds apart when the stages that the second run made had other packages."""
    records = compared(root, lambda stage, number: changed if number == 1 else {})
    return [difference.path for difference in differences(records, [])]


def test_upgrades_that_can_change_no_number_keep_no_runs_apart(tmp_path: Path) -> None:
    changed = {name: "2.0" for name in recorded() if name in HARMLESS}
    assert {"mlflow", "hydra-core", "datasets", "pyarrow"} <= changed.keys()
    assert differing(tmp_path, changed | {"python": "3.11.9"}) == []


def test_an_upgrade_that_can_is_named_with_its_stages(tmp_path: Path) -> None:
    assert differing(tmp_path, {"torch": "2.0"}) == [
        "environment.packages.evaluation.torch",
        "environment.packages.training.torch",
    ]


TRAINED = ("evaluation", "finetuning", "first_training", "training")
APART = {
    "torch": {"embeddings", "token_statistics", "tokens", "vocabulary", *TRAINED},
    "accelerate": {"finetuning", "first_training", "training"},
    "lm-eval": {"evaluation", "finetuning"},
    "sacrebleu": {"evaluation", "finetuning"},
    "faiss-cpu": {"neighbours", "order"},
    "sentencepiece": {"vocabulary"},
    "regex": {"duplicates", "token_statistics", "tokens", "vocabulary"},
    "scikit-learn": {"embeddings"},
    "datasketch": {"duplicates"},
    "python": {"duplicates", "embeddings", "evaluation", "finetuning", "lexical_neighbours", "tasks"},
}
"""By package, the stages whose numbers another version of it may change."""


def test_a_package_decides_its_own_stages_alone() -> None:
    found = {}
    for name in APART:
        made = [{stage: made_by(changed) for stage in STAGES} for changed in ({}, {name: "3.12.0"})]
        entries = [environment(NO_STAGES, each) for each in made]
        apart = differing_fields(list(zip(("one", "other"), entries, strict=True)), [])
        found[name] = {difference.path.removeprefix("packages.").partition(".")[0] for difference in apart}
    assert found == APART


def test_builds_of_faiss_are_told_apart() -> None:
    """They are distributions by several names, all of which provide the module faiss."""
    builds = {"cpu": {"faiss-cpu": "1.12"}, "gpu": {"faiss-gpu-cu12": "1.8"}}
    assert {"faiss-cpu", "faiss-gpu-cu12"} <= set(recorded())
    assert Code({}, builds["cpu"]).digest != Code({}, builds["gpu"]).digest
    runs = [
        (name, environment(NO_STAGES, {"order": {"provenance": {"packages": packages, "python": "3.11.7"}}}))
        for name, packages in builds.items()
    ]
    assert [difference.path for difference in differing_fields(runs, [])] == [
        "packages.order.faiss-cpu",
        "packages.order.faiss-gpu-cu12",
    ]


def test_every_stage_and_every_dependency_has_been_judged() -> None:
    assert set(DECIDING) == {stage.artefact for stage in STAGES.values()}
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies = {re.split(r"[<>=\[ ]", line)[0] for line in project["dependencies"]}
    assert dependencies - set(recorded()) == set()
    assert not {name for packages in DECIDING.values() for name in packages} & set(HARMLESS)


@pytest.mark.parametrize("stage", ["training", "evaluation"])
def test_a_result_that_is_gone_is_named_with_where_it_was_and_keeps_none_apart(stage: str, tmp_path: Path) -> None:
    _, runs = sweep(tmp_path)
    record(runs, lambda made, number: {})
    layout = OutputRoot.of(runs[0].job.config)
    path = layout.store.path(stage, runs[0].nodes[stage].key)
    shutil.rmtree(path)
    (first, second), _ = collect(runs, [], layout)
    assert [loss.partition(";")[0] for loss in first.gone] == [f"its {stage} is gone ({path})"]
    assert second.gone == ()
    assert differences([first, second], []) == []
