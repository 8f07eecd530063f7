"""What of an output root can go: what nothing on record needs, and nothing that a run or a living process does."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import main
from paribus.pipeline.make import note_made_of
from paribus.pipeline.output_root import OutputRoot, named_root
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.inventory import take_inventory
from paribus.pipeline.record.needs import find_needs
from paribus.pipeline.record.pruning import Kept, Prunable, asked, prunable, prune, signatures
from paribus.pipeline.stages import STAGES
from paribus.store import atomic
from paribus.store.artifact import Artifact, Store
from paribus.store.claim import acquire
from support.recorded_sweeps import finished_sweep

TOKENS = STAGES["tokens"].code_version


@pytest.fixture(name="runs")
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PreparedRun]:
    """Two finished runs below `paribus_runs`, whose artefacts `training` have weights and an optimizer."""
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")
    runs = finished_sweep(tmp_path / "made", "-m", "seed=0,1")
    store = root().store
    for run in runs:
        node = run.nodes["training"]
        held = store.claim("training", node.key)
        assert held is not None
        with held:
            store.remove(held, "training", node.key)
            publish(store, "training", node.key, {"step_00000001/w": "w" * 50, "state/s": "s" * 9}, held)
    return runs


def publish(store: Store, stage: str, key: str, files: dict[str, str], held: Any = None, **about: Any) -> None:
    held = held or store.claim(stage, key)
    output = store.empty_output(held, stage, key)
    for name, text in files.items():
        (output / name).parent.mkdir(exist_ok=True)
        (output / name).write_text(text, encoding="utf-8")
    record = {"result": {"steps": 1, "epochs": 0.1}, "provenance": {"packages": {}, "python": "3.11.7"}}
    store.publish(held, stage, key, record | about)
    held.path.unlink(missing_ok=True)


def root() -> OutputRoot:
    return named_root(None)


def found() -> tuple[list[Prunable], list[Kept]]:
    inventory = take_inventory(root())
    return prunable(inventory, find_needs(inventory))


def kinds(prunables: list[Prunable]) -> list[tuple[str, int]]:
    return sorted((one.kind, one.size) for one in prunables)


def set_status(run: PreparedRun, status: str) -> None:
    path = root().run(run.run_id) / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"status": status}), encoding="utf-8")


def set_config(run: PreparedRun, **fields: Any) -> None:
    path = root().run(run.run_id) / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"config": record["config"] | fields}), encoding="utf-8")


def test_optimizer_states_and_checkpoints_of_finished_runs_go_where_these_are_named(
    runs: list[PreparedRun],
) -> None:
    everything, kept = found()
    assert kept == []
    assert kinds(everything) == [("checkpoints", 50)] * 2 + [("optimizer states", 9)] * 2
    assert asked(everything, set()) == []
    named = asked(everything, {runs[1].run_id})
    assert kinds(named) == [("checkpoints", 50), ("optimizer states", 9)]
    assert {one.place[1] for one in named} == {runs[1].nodes["training"].key}


def test_nothing_goes_of_a_run_that_stopped_after_a_stage(runs: list[PreparedRun]) -> None:
    set_status(runs[0], "stopped")
    everything, kept = found()
    assert {one.place[1] for one in everything} == {runs[1].nodes["training"].key}
    assert {(one.kind, one.why) for one in kept} == {
        (kind, f"run {runs[0].run_id} is not done and needs it") for kind in ("checkpoints", "optimizer states")
    }


def own_of(run: PreparedRun, others: list[PreparedRun]) -> set[tuple[str, str]]:
    """Artefacts of a run alone."""
    shared = {node.key for other in others if other is not run for node in other.nodes.values()}
    return {(node.name, node.key) for node in run.nodes.values() if node.key not in shared}


@pytest.mark.parametrize("status", ["failed", "interrupted", "running"])
def test_all_that_a_failed_run_made_alone_goes_where_it_is_named(runs: list[PreparedRun], status: str) -> None:
    set_status(runs[0], status)
    everything, kept = found()
    assert kept == []
    assert asked(everything, set()) == []
    assert {one.place[1] for one in asked(everything, {runs[1].run_id})} == {runs[1].nodes["training"].key}
    named = asked(everything, {runs[0].run_id})
    assert {one.place for one in named} == own_of(runs[0], runs)
    assert {one.place[0] for one in named if one.kind == "trainings of failed runs"} == {"training"}
    assert all(prune(root(), one) for one in named)
    assert not any(root().store.find(*place) for place in own_of(runs[0], runs))
    assert all(root().store.find(node.name, node.key) for node in runs[1].nodes.values())
    assert (root().run(runs[0].run_id) / "run.json").is_file()


def test_what_a_failed_run_made_stays_where_the_run_is_begun_again_meanwhile(runs: list[PreparedRun]) -> None:
    set_status(runs[0], "failed")
    named = asked(found()[0], {runs[0].run_id})
    held = acquire(root().run_claim(runs[0].run_id), 60.0)
    assert named and held is not None
    with held:
        assert not any(prune(root(), one) for one in named)
    assert all(root().store.find(node.name, node.key) for node in runs[0].nodes.values())
    assert all(prune(root(), one) for one in named)


def test_a_failed_sweep_goes_whole_with_its_sizes_told_first(
    runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    for run in runs:
        set_status(run, "failed")
    names = [run.run_id for run in runs]
    made = {(node.name, node.key) for run in runs for node in run.nodes.values()}
    assert main(["prune", names[0]]) == 0
    said = capsys.readouterr().out
    assert "trainings of failed runs (1): the same command would train again" in said
    assert "can go; --yes removes it" in said
    assert all(root().store.find(*place) for place in made)
    assert main(["prune", *names, "--yes"]) == 0
    assert "trainings of failed runs (2)" in capsys.readouterr().out
    assert not any(root().store.find(*place) for place in made)
    assert main(["prune", *names]) == 0
    assert "nothing can go" in capsys.readouterr().out


def test_what_a_failed_run_shares_with_one_that_is_not_done_stays(runs: list[PreparedRun]) -> None:
    set_status(runs[0], "failed")
    set_status(runs[1], "stopped")
    named = asked(found()[0], {run.run_id for run in runs})
    assert {one.place for one in named} == own_of(runs[0], runs)


@pytest.mark.parametrize("away", ["configuration", "files"])
def test_what_a_failed_run_may_need_goes_where_that_is_named_too(runs: list[PreparedRun], away: str) -> None:
    for run in runs:
        set_status(run, "failed")
    if away == "files":
        Path("texts.txt").unlink()
    else:
        set_config(runs[1], a_field_of_other_code=1)
    everything, kept = found()
    assert kept == []
    assert asked(everything, {runs[0].run_id}) == []
    assert {one.place for one in asked(everything, {run.run_id for run in runs})} == {
        (node.name, node.key) for run in runs for node in run.nodes.values()
    }


def test_what_a_failed_run_made_stays_where_a_record_is_torn(runs: list[PreparedRun]) -> None:
    set_status(runs[0], "failed")
    (root().run(runs[1].run_id) / "run.json").write_text("{", encoding="utf-8")
    everything, kept = found()
    assert asked(everything, {runs[0].run_id}) == []
    assert {one.why for one in kept} == {f"the record of run {runs[1].run_id} cannot be read"}


@pytest.mark.parametrize("how", ["run", "path"])
def test_what_another_run_starts_from_stays_where_its_own_run_failed(runs: list[PreparedRun], how: str) -> None:
    set_status(runs[0], "failed")
    set_config(
        runs[1], start={"kind": "checkpoint", how: f"runs/{runs[0].run_id}" if how == "path" else runs[0].run_id}
    )
    everything, kept = found()
    named = {one.place[0] for one in asked(everything, {run.run_id for run in runs}) if runs[0].run_id in one.runs}
    assert named and "training" not in named
    assert [one.kind for one in kept] == ["trainings of failed runs"]


def test_artefacts_of_another_code_version_go_unless_a_run_names_them(runs: list[PreparedRun]) -> None:
    store = root().store
    publish(store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS - 1, inputs={})
    publish(store, "contexts", "0b", {"c": "1"}, code_version=STAGES["contexts"].code_version, inputs={"tokens": "0a"})
    publish(store, "tokens", "0c", {"ids": "1"}, code_version=TOKENS, inputs={})
    publish(store, "a_stage_of_old", "0d", {"x": "12"}, code_version=1, inputs={})
    old = [one for one in found()[0] if one.kind == "artefacts of other code"]
    assert {one.place for one in old} == {("tokens", "0a"), ("contexts", "0b"), ("a_stage_of_old", "0d")}
    path = root().run(runs[0].run_id) / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["stages"]["tokens"] = {"key": "0a", "state": "made", "seconds": 1.0}
    path.write_text(json.dumps(record), encoding="utf-8")
    left = {one.place for one in found()[0] if one.kind == "artefacts of other code"}
    assert left == {("contexts", "0b"), ("a_stage_of_old", "0d")}


def of_no_run(everything: list[Prunable]) -> set[tuple[str, str]]:
    return {one.place for one in asked(everything, set()) if one.kind == "artefacts of no run"}


def test_what_neither_a_run_nor_a_report_is_made_of_goes(runs: list[PreparedRun]) -> None:
    store, version = root().store, STAGES["token_statistics"].code_version
    publish(store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS, inputs={})
    publish(store, "token_statistics", "0b", {"s": "1"}, code_version=version, inputs={"tokens": "0a"})
    publish(store, "tokens", "0c", {"ids": "12"}, code_version=TOKENS, inputs={})
    report = root().path / "tokens" / "feed"
    note_made_of(report, [Artifact("tokens", "0a", report), Artifact("token_statistics", "0b", report)])
    everything, kept = found()
    assert of_no_run(everything) == {("tokens", "0c")}
    told = "the report tokens/feed is made of it, and lets it go with its directory"
    assert sorted((one.kind, one.why, one.size) for one in kept) == [("artefacts of no run", told, n) for n in (1, 3)]
    shutil.rmtree(report)
    going = asked(found()[0], set())
    assert of_no_run(going) == {("tokens", "0a"), ("token_statistics", "0b"), ("tokens", "0c")}
    assert all(prune(root(), one) for one in going)
    assert [store.find(*one.place) for one in going] == [None] * 3
    assert all(store.find(node.name, node.key) for run in runs for node in run.nodes.values())


@pytest.mark.parametrize("listed", [None, "{", '{"artefacts": [{"stage": 3}]}', '{"artefacts": 3}'])
def test_what_no_run_names_stays_beside_a_report_that_does_not_say_what_it_is_made_of(
    runs: list[PreparedRun], listed: str | None
) -> None:
    publish(root().store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS, inputs={})
    (root().path / "orders" / "logs").mkdir(parents=True)
    assert of_no_run(found()[0]) == {("tokens", "0a")}
    report = root().path / "orders" / "feed"
    report.mkdir()
    if listed:
        (report / "artefacts.json").write_text(listed, encoding="utf-8")
    everything, kept = found()
    assert of_no_run(everything) == set()
    told = "the report orders/feed may be made of it, which has no artefacts.json that can be read"
    assert [one.why for one in kept] == [f"{told}; remove its directory"]
    shutil.rmtree(report)
    assert of_no_run(found()[0]) == {("tokens", "0a")}


def test_what_a_run_reads_by_a_path_or_may_need_stays_though_no_run_names_it(runs: list[PreparedRun]) -> None:
    publish(root().store, "vocabulary", "0a", {"v": "1"}, code_version=STAGES["vocabulary"].code_version, inputs={})
    set_config(runs[1], tokenizer={"kind": "existing", "path": str(root().store.path("vocabulary", "0a"))})
    everything, kept = found()
    assert of_no_run(everything) == set()
    assert [one.why for one in kept] == [f"run {runs[1].run_id} reads it as tokenizer.path"]
    publish(root().store, "tokens", "0b", {"ids": "123"}, code_version=TOKENS, inputs={})
    assert of_no_run(found()[0]) == {("tokens", "0b")}
    set_status(runs[0], "interrupted")
    Path("texts.txt").unlink()
    everything, kept = found()
    assert of_no_run(everything) == set()
    assert f"run {runs[0].run_id} is not done and may need it" in {one.why for one in kept}


def test_a_training_whose_run_is_not_on_record_stays_with_what_it_was_made_of(runs: list[PreparedRun]) -> None:
    store, version = root().store, STAGES["training"].code_version
    publish(store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS, inputs={})
    publish(store, "training", "0b", {"step_00000001/w": "w"}, code_version=version, inputs={"tokens": "0a"})
    everything, kept = found()
    assert of_no_run(everything) == set()
    assert {one.why for one in kept} == {"of a training whose run is not on record"}


def test_a_vocabulary_of_no_run_stays_for_whoever_reads_its_path(runs: list[PreparedRun]) -> None:
    store, version = root().store, STAGES["vocabulary"].code_version
    publish(store, "corpus", "0a", {"texts": "1"}, code_version=STAGES["corpus"].code_version, inputs={})
    publish(store, "vocabulary", "0b", {"tokenizer": "22"}, code_version=version, inputs={"corpus": "0a"})
    everything, kept = found()
    assert of_no_run(everything) == {("corpus", "0a")}
    assert [(one.size, one.why) for one in kept] == [(2, "tokenizers are small, and read by their paths from anywhere")]


@pytest.mark.parametrize("what", ["run", "artefact"])
def test_what_no_run_names_stays_while_anything_is_made(runs: list[PreparedRun], what: str) -> None:
    publish(root().store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS, inputs={})
    (one,) = asked(found()[0], set())
    held = acquire(root().run_claim("ffff"), 60.0) if what == "run" else root().store.claim("corpus", "0f")
    assert held is not None
    with held:
        assert not prune(root(), one)
    assert root().store.find("tokens", "0a")
    assert prune(root(), one)


@pytest.mark.parametrize("what", ["run", "report"])
def test_what_no_run_named_stays_where_one_that_ended_meanwhile_does(runs: list[PreparedRun], what: str) -> None:
    store = root().store
    publish(store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS, inputs={})
    known = signatures(root())
    (one,) = asked(found()[0], set())
    if what == "run":
        path = root().run(runs[0].run_id) / "run.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        record["stages"]["tokens"]["key"] = "0a"
        atomic.write_json(path, record)
    else:
        note_made_of(root().path / "tokens" / "feed", [Artifact("tokens", "0a", root().path)])
    assert not prune(root(), one, known)
    assert store.find("tokens", "0a")
    assert prune(root(), one, signatures(root()))


def test_work_of_attempts_goes_unless_a_run_on_record_goes_on_with_it(runs: list[PreparedRun]) -> None:
    store = root().store
    (store.work("training", "0e") / "checkpoint").write_text("abandoned", encoding="utf-8")
    set_status(runs[0], "interrupted")
    held = store.claim("evaluation", runs[0].nodes["evaluation"].key)
    assert held is not None
    with held:
        store.remove(held, "evaluation", runs[0].nodes["evaluation"].key)
    (store.work("evaluation", runs[0].nodes["evaluation"].key) / "part").write_text("resumable", encoding="utf-8")
    everything, _ = found()
    assert ("abandoned work", 9) in kinds(asked(everything, set()))
    assert ("unfinished work", 9) not in kinds(asked(everything, set()))
    assert ("unfinished work", 9) in kinds(asked(everything, {runs[0].run_id}))
    assert ("unfinished work", 9) not in kinds(asked(everything, {runs[1].run_id}))


def test_work_whose_run_cannot_be_told_without_its_files_stays(runs: list[PreparedRun]) -> None:
    (root().store.work("training", "0e") / "checkpoint").write_text("whose?", encoding="utf-8")
    set_status(runs[0], "interrupted")
    Path("texts.txt").unlink()
    assert "abandoned work" not in {one.kind for one in found()[0]}


def test_what_a_run_may_name_whose_record_is_torn_stays(runs: list[PreparedRun]) -> None:
    store = root().store
    publish(store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS - 1, inputs={})
    (store.work("training", "0e") / "checkpoint").write_text("whose?", encoding="utf-8")
    (root().run(runs[0].run_id) / "run.json").write_text("{", encoding="utf-8")
    everything, kept = found()
    assert {one.place[1] for one in everything} == {runs[1].nodes["training"].key}
    assert f"the record of run {runs[0].run_id} cannot be read" in {one.why for one in kept}


def test_what_a_run_may_go_on_with_whose_configuration_this_code_refuses_stays(runs: list[PreparedRun]) -> None:
    store = root().store
    publish(store, "tokens", "0a", {"ids": "123"}, code_version=TOKENS - 1, inputs={})
    (store.work("training", "0e") / "checkpoint").write_text("whose?", encoding="utf-8")
    set_config(runs[0], a_field_of_other_code=1)
    assert {"abandoned work", "artefacts of other code"} <= {one.kind for one in found()[0]}
    set_status(runs[0], "interrupted")
    everything, kept = found()
    assert asked(everything, set()) == []
    assert {one.place[1] for one in asked(everything, {runs[1].run_id})} == {runs[1].nodes["training"].key}
    refused = f"run {runs[0].run_id} is not done, and this code refuses its configuration"
    assert {one.kind for one in kept if one.why == refused} == {"abandoned work", "artefacts of other code"}


@pytest.mark.parametrize("linked", ["artifacts", "artifacts/training", "nothing, but without runs"])
def test_nothing_goes_of_artefacts_that_other_roots_may_use(
    runs: list[PreparedRun], linked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root().path / linked
    if path.exists():
        path.rename("shared")
        path.symlink_to(Path("shared").absolute())
    else:
        (root().path / "runs").rename("elsewhere")
    (root().store.work("training", "0e") / "checkpoint").write_text("whose?", encoding="utf-8")
    before = sorted(root().store.root.rglob("*"))
    assert main(["prune", "--yes"]) == 2
    said = capsys.readouterr().err
    assert "so runs of other roots may need what is there; nothing is pruned" in said
    assert ("is a link to" in said) == (path.exists())
    assert sorted(root().store.root.rglob("*")) == before


def test_what_a_living_process_has_in_hand_stays(runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]) -> None:
    store, key = root().store, runs[0].nodes["training"].key
    held = store.claim("training", key)
    assert held is not None
    with held:
        assert main(["prune", *(run.run_id for run in runs), "--yes"]) == 0
    said = capsys.readouterr().out
    assert "stays, as a living process has it in hand or a new record names it: 59 B" in said
    assert [len(list((store.path("training", run.nodes["training"].key)).glob("state/*"))) for run in runs] == [1, 0]


@pytest.mark.parametrize("how", ["run", "begin of the run", "path of the run", "path of the artefact"])
def test_what_another_run_starts_from_stays_whoever_is_named(runs: list[PreparedRun], how: str) -> None:
    first, second = runs[0].run_id, runs[1].run_id
    training = root().store.path("training", runs[0].nodes["training"].key)
    ways = {
        "run": {"run": first},
        "begin of the run": {"run": first[:10]},
        "path of the run": {"path": f"elsewhere/runs/{first}"},
        "path of the artefact": {"path": str(training / "step_00000001")},
    }
    set_config(runs[1], start={"kind": "checkpoint", **ways[how]})
    everything, kept = found()
    assert {one.place[1] for one in asked(everything, {first, second})} == {runs[1].nodes["training"].key}
    assert {one.why for one in kept} == {
        f"run {second} {'reads it as start.path' if 'path' in how else 'starts from it'}"
    }


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("of", ["a checkpoint", "a vocabulary of other code"])
@pytest.mark.parametrize("field", ["tokenizer.path", "pretokenizer.model", "evaluation.tasks"])
def test_what_another_run_reads_by_a_path_of_any_field_stays(
    runs: list[PreparedRun], of: str, field: str, link: bool
) -> None:
    store, key = root().store, runs[0].nodes["training"].key
    publish(store, "vocabulary", "0a", {"vocabulary.json": "{}"}, code_version=0, inputs={})
    read = {"a checkpoint": store.path("training", key) / "step_00000001", "a vocabulary of other code": None}[of]
    read = read or store.path("vocabulary", "0a") / "vocabulary.json"
    if link:
        Path("link").symlink_to(read)
    value = "link" if link else str(read)
    group, _, name = field.partition(".")
    set_config(runs[1], **{group: {"kind": "files", name: [value] if name == "tasks" else value}})
    everything, kept = found()
    assert read.parent.name not in {one.place[1] for one in everything}
    assert f"run {runs[1].run_id} reads it as {field}" in {one.why for one in kept}


def test_the_root_of_a_rerun_needs_nothing_of_the_run_whose_name_it_has(runs: list[PreparedRun]) -> None:
    set_config(runs[1], root=f"elsewhere/reruns/{runs[0].run_id}")
    assert found()[1] == []


def test_a_training_of_two_runs_goes_where_both_are_named(runs: list[PreparedRun]) -> None:
    path = root().run(runs[1].run_id) / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["stages"]["training"]["key"] = runs[0].nodes["training"].key
    path.write_text(json.dumps(record), encoding="utf-8")
    everything, _ = found()
    assert asked(everything, {runs[0].run_id}) == []
    assert len(asked(everything, {run.run_id for run in runs})) == 2


def test_what_was_pruned_is_not_counted_again(runs: list[PreparedRun]) -> None:
    everything, _ = found()
    assert all(prune(root(), one) for one in everything if one.kind == "optimizer states")
    assert kinds(found()[0]) == [("checkpoints", 50)] * 2


def test_refusals(tmp_path: Path, runs: list[PreparedRun], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, told in (
        (["nothing"], "no run or sweep 'nothing'"),
        (["root=nowhere"], "is no directory; name the output root"),
        (["--force"], "'--force' is not taken here, but root="),
    ):
        assert main(["prune", *arguments]) == 2
        assert told in capsys.readouterr().err
    assert not Path("nowhere").exists()
