"""What can leave an output root: what no record needs, and of named runs what belongs to them alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import main
from paribus.errors import ConfigurationError
from paribus.pipeline.clean import Cleaning, Removal, clean
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot, named_root
from paribus.pipeline.run import note_made_of
from paribus.store.artifacts import Artifact, Store
from paribus.store.claims import acquire
from support.recorded_sweeps import finished_sweep

A, B, C = (letter * 64 for letter in "abc")
Place = tuple[str, str]


@pytest.fixture(name="runs")
def _runs(tmp_path: Path, in_directory_with_text: None) -> list[PreparedRun]:
    """Two finished runs below `paribus_runs`, whose artefacts `training` have weights and an optimizer."""
    runs = finished_sweep(tmp_path / "made", "-m", "seed=0,1")
    store = root().store
    for run in runs:
        node = run.nodes["training"]
        held = store.claim("training", node.key)
        assert held is not None
        with held:
            store.remove(held, "training", node.key)
        publish(store, "training", node.key, {"step_00000001/w": "w" * 50, "state/s": "s" * 9, "metrics.jsonl": "m"})
        change_record(run, keys={name: node.key for name, node in run.nodes.items()})
    return runs


def publish(store: Store, stage: str, key: str, files: dict[str, str], **about: Any) -> None:
    held = store.claim(stage, key)
    assert held is not None
    with held:
        output = store.empty_output(held, stage, key)
        for name, text in files.items():
            (output / name).parent.mkdir(exist_ok=True)
            (output / name).write_text(text, encoding="utf-8")
        record = {"result": {"steps": 1, "epochs": 0.1}, "provenance": {"packages": {}, "python": "3.11.7"}}
        store.publish(held, stage, key, record | about)


def root() -> OutputRoot:
    return named_root(None)


def change_record(run: PreparedRun, **fields: Any) -> None:
    path = root().run(run.run_id) / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["config"] |= fields.pop("config", {})
    path.write_text(json.dumps(record | fields), encoding="utf-8")


def places(removals: list[Removal]) -> set[Place]:
    return {removal.place for removal in removals}


def own_of(run: PreparedRun, others: list[PreparedRun]) -> set[Place]:
    """Artefacts of a run alone, but its vocabulary."""
    shared = {node.key for other in others if other is not run for node in other.nodes.values()}
    nodes = [node for node in run.nodes.values() if node.name != "vocabulary"]
    return {(node.name, node.key) for node in nodes if node.key not in shared}


def test_weights_and_optimizer_states_of_named_finished_runs_go(runs: list[PreparedRun]) -> None:
    assert clean(root(), []) == []
    (removal,) = Cleaning.of(root()).of_runs([runs[1].run_id])
    assert removal.place == ("training", runs[1].nodes["training"].key)
    assert set(removal.files) == {"step_00000001/w", "state/s"} and removal.size == 59
    assert clean(root(), [runs[1].run_id]) == [removal]
    path = root().store.path(*removal.place)
    assert sorted(file.name for file in path.rglob("*") if file.is_file()) == ["metrics.jsonl", "record.json"]
    assert Cleaning.of(root()).of_runs([runs[1].run_id]) == []
    assert [one.place[1] for one in Cleaning.of(root()).of_runs([runs[0].run_id])] == [runs[0].nodes["training"].key]


@pytest.mark.parametrize("status", ["failed", "stopped"])
def test_all_that_an_unfinished_run_made_alone_goes_where_it_is_named(runs: list[PreparedRun], status: str) -> None:
    change_record(runs[0], status=status, until="order")
    assert clean(root(), []) == []
    assert places(clean(root(), [runs[0].run_id])) == own_of(runs[0], runs)
    assert not any(root().store.find(*place) for place in own_of(runs[0], runs))
    assert all(root().store.find(node.name, node.key) for node in runs[1].nodes.values())
    assert (root().run(runs[0].run_id) / "run.json").is_file()


def test_artefacts_that_a_run_may_still_need_stay(runs: list[PreparedRun]) -> None:
    """A run that failed early has the keys of all its stages on record."""
    change_record(runs[0], status="failed")
    change_record(runs[1], status="failed", stages={})
    assert places(Cleaning.of(root()).of_runs([runs[0].run_id])) == own_of(runs[0], runs)
    assert Cleaning.of(root()).unused() == []


@pytest.mark.parametrize("how", ["run", "path", "link"])
def test_a_training_that_another_run_starts_from_stays_where_its_own_run_is_named(
    runs: list[PreparedRun], how: str
) -> None:
    training = ("training", runs[0].nodes["training"].key)
    Path("link").symlink_to(root().store.path(*training))
    start = {"run": runs[0].run_id[:6], "path": str(root().store.path(*training)), "link": "link"}[how]
    change_record(runs[1], config={"start": {"kind": "checkpoint", "run" if how == "run" else "path": start}})
    assert Cleaning.of(root()).of_runs([runs[0].run_id]) == []
    change_record(runs[0], status="failed")
    assert places(Cleaning.of(root()).of_runs([runs[0].run_id])) == own_of(runs[0], runs) - {training}
    assert training not in places(Cleaning.of(root()).of_runs([run.run_id for run in runs]))


def test_a_run_that_lacks_its_scores_keeps_the_weights_that_give_them_again(runs: list[PreparedRun]) -> None:
    shutil.rmtree(root().store.path("evaluation", runs[0].nodes["evaluation"].key))
    assert Cleaning.of(root()).of_runs([runs[0].run_id]) == []


def test_files_that_are_no_artefacts_stay(runs: list[PreparedRun]) -> None:
    for name in ("backup/thesis", f"tokens/{A}", "lost+found/x"):
        (root().store.root / name).mkdir(parents=True)
        (root().store.root / name / "file").touch()
    (root().store.root / "tokens/file").touch()
    assert clean(root(), []) == []


def test_artefacts_that_neither_a_run_nor_a_report_names_go(runs: list[PreparedRun]) -> None:
    store = root().store
    publish(store, "tokens", A, {"ids": "123"})
    publish(store, "token_statistics", B, {"s": "1"}, inputs={"tokens": A})
    publish(store, "a_stage_of_old", C, {"ids": "12"})
    report = root().path / "tokens" / "feed"
    note_made_of(report, [Artifact("tokens", A, report), Artifact("token_statistics", B, report)])
    assert [(one.place, one.size) for one in clean(root(), [])] == [(("a_stage_of_old", C), 2)]
    shutil.rmtree(report)
    assert places(clean(root(), [])) == {("tokens", A), ("token_statistics", B)}
    assert all(store.find(node.name, node.key) for run in runs for node in run.nodes.values())


def test_a_training_without_a_run_stays_with_what_it_was_made_of_and_so_does_a_vocabulary(
    runs: list[PreparedRun],
) -> None:
    store = root().store
    publish(store, "tokens", A, {"ids": "123"})
    publish(store, "training", B, {"step_00000001/w": "w"}, inputs={"tokens": A})
    publish(store, "vocabulary", C, {"tokenizer": "22"}, inputs={})
    assert Cleaning.of(root()).unused() == []


def test_unfinished_work_goes_unless_a_run_goes_on_with_it(runs: list[PreparedRun]) -> None:
    needed = runs[0].nodes["evaluation"].key
    shutil.rmtree(root().store.path("evaluation", needed))
    for key in (needed, A):
        (root().store.work("evaluation", key) / "half").write_text("12", encoding="utf-8")
    (removal,) = clean(root(), [])
    assert (removal.place, removal.partial, removal.size) == (("evaluation", A), True, 2)
    assert [path.name for path in (root().store.root / "partial").iterdir()] == [f"evaluation-{needed}"]
    change_record(runs[0], status="failed")
    assert ("evaluation", needed) in places(clean(root(), [runs[0].run_id]))
    assert list((root().store.root / "partial").iterdir()) == []


@pytest.mark.parametrize("what", ["run", "artefact"])
def test_nothing_goes_while_a_process_works_whose_needs_no_record_says(runs: list[PreparedRun], what: str) -> None:
    publish(root().store, "tokens", A, {"ids": "123"})
    held = acquire(root().run_claim("f" * 16), 60.0) if what == "run" else root().store.claim("corpus", C)
    assert held is not None
    with held, pytest.raises(ConfigurationError, match="is running" if what == "run" else "for no recorded run"):
        clean(root(), [])
    assert root().store.find("tokens", A)
    assert places(clean(root(), [])) == {("tokens", A)}


def test_a_running_run_keeps_what_it_needs_and_cannot_be_named(runs: list[PreparedRun]) -> None:
    publish(root().store, "tokens", A, {"ids": "123"})
    change_record(runs[0], status="running")
    held = acquire(root().run_claim(runs[0].run_id), 60.0)
    assert held is not None
    with held:
        with pytest.raises(ConfigurationError, match="is running"):
            clean(root(), [runs[0].run_id])
        assert places(clean(root(), [])) == {("tokens", A)}
    assert all(root().store.find(node.name, node.key) for node in runs[0].nodes.values())


@pytest.mark.parametrize(
    ("record", "status"), [("{", None), (None, "failed")], ids=["torn record", "record of another version"]
)
def test_nothing_goes_where_a_record_does_not_say_what_its_run_needs(
    runs: list[PreparedRun], record: str | None, status: str | None
) -> None:
    path = root().run(runs[1].run_id) / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["keys"]
    path.write_text(record or json.dumps(content | {"status": status}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"run {runs[1].run_id}: its record does not list"):
        Cleaning.of(root())


@pytest.mark.parametrize("how", ["artifacts is a link", "a stage is a link", "no runs"])
def test_nothing_goes_where_other_roots_may_use_the_artefacts(runs: list[PreparedRun], how: str) -> None:
    if how == "no runs":
        shutil.rmtree(root().path / "runs")
    else:
        path = root().store.root if how == "artifacts is a link" else root().store.root / "tokens"
        path.rename("elsewhere")
        path.symlink_to(Path("elsewhere").resolve())
    with pytest.raises(ConfigurationError, match="other roots may use these artefacts"):
        Cleaning.of(root())


def test_verifying_finds_damage_and_sets_it_aside(runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--verify"]) == 0
    assert "damaged: 0" in capsys.readouterr().out
    path = root().store.path("training", runs[0].nodes["training"].key)
    (path / "metrics.jsonl").write_text("n", encoding="utf-8")
    assert main(["clean", "--verify"]) == 1
    assert "damaged: 1" in capsys.readouterr().out and not path.exists()
