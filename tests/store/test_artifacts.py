"""The store on its own: publication in one step, verification, a full disk, and files that were removed on purpose."""

import errno
import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from paribus.errors import DataError, InfrastructureError
from paribus.pipeline.clean import examine, remove_leftovers
from paribus.store import files
from paribus.store.artifacts import Artifact, Store
from paribus.store.claims import ClaimLostError
from paribus.store.provenance import git_state

KEY = "f" * 64


def publish(store: Store, text: str = "content") -> Artifact:
    held = store.claim("corpus", KEY)
    assert held is not None
    with held:
        output = store.empty_output(held, "corpus", KEY)
        (output / "data").write_text(text, encoding="utf-8")
        return store.publish(held, "corpus", KEY, {"result": {"documents": 1}})


def test_an_artefact_is_found_with_its_record_and_leaves_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store)
    found = store.find("corpus", KEY)
    assert found is not None
    assert found.record()["result"] == {"documents": 1}
    assert set(found.record()["files"]) == {"data"}
    assert list((tmp_path / "partial").iterdir()) == []
    assert not store.claim_path("corpus", KEY).exists()


def test_verifying_finds_a_flipped_byte_and_sets_the_artefact_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    artifact = publish(store)
    said: list[str] = []
    assert examine(store, said.append) == 0
    (artifact.path / "data").write_text("Content", encoding="utf-8")
    assert examine(store, said.append) == 1
    assert "data differs from its digest" in said[-2]
    assert store.find("corpus", KEY) is None
    assert len(list((tmp_path / "damaged").iterdir())) == 1
    assert examine(store, said.append) == 0


def test_resumable_work_stays_and_other_leftovers_go(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (store.work("training", KEY) / "step_00000001").mkdir()
    for stage in ("training", "tokens"):
        held = store.claim(stage, KEY)
        assert held is not None
        with held:
            store.empty_output(held, stage, KEY)
    remove_leftovers(store)
    assert [path.name for path in store.work("training", KEY).parent.iterdir()] == ["work"]
    assert (store.work("training", KEY) / "step_00000001").is_dir()
    assert sorted(path.name for path in (tmp_path / "partial").iterdir()) == [f"training-{KEY}"]


def test_a_full_disk_leaves_the_old_file_and_no_fragment(small_disk: Path) -> None:
    files.write_json(small_disk / "record.json", {"a": 1})
    with pytest.raises(OSError) as caught:
        files.write_text(small_disk / "record.json", "x" * 3_000_000)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError):
        files.write_bytes(small_disk / "record.json", bytes(3_000_000))
    assert [path.name for path in small_disk.iterdir()] == ["record.json"]
    assert "1" in (small_disk / "record.json").read_text(encoding="utf-8")


def test_code_that_no_checkout_tracks_has_no_commit(tmp_path: Path) -> None:
    file = tmp_path / "installed.py"
    file.write_text("", encoding="utf-8")
    assert git_state(file) is None
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(tmp_path), *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    assert git_state(file) is None
    subprocess.run(["git", "-C", str(tmp_path), "add", "installed.py"], check=True)
    state = git_state(file)
    assert state is not None
    assert "installed.py" in state["diff"]


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_file_that_is_replaced_in_one_step_is_whole_or_unchanged(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"

    def write(aside: Path, text: str) -> None:
        if kind == "directory":
            aside.mkdir()
        (aside / "inside" if kind == "directory" else aside).write_text(text, encoding="utf-8")

    def stop() -> None:
        with files.replacing(target) as aside:
            write(aside, "half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []
    with files.replacing(target) as aside:
        write(aside, "whole")
        assert not target.exists()
    assert list(tmp_path.iterdir()) == [target]
    read = target / "inside" if kind == "directory" else target
    with pytest.raises(KeyboardInterrupt):
        stop()
    assert read.read_text(encoding="utf-8") == "whole" and list(tmp_path.iterdir()) == [target]


def test_no_claim_waits_while_an_artefact_goes_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    taken = []

    def sync(directory: Path) -> None:
        with (tmp_path / "claims" / ".lock").open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        taken.append(directory)

    monkeypatch.setattr("paribus.store.artifacts.sync_tree", sync)
    publish(store)
    assert len(taken) == 1


def test_a_file_that_is_replaced_is_on_the_disk_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    files.write_text(tmp_path / "file", "text")
    assert flushed[-1] == str(tmp_path)
    assert len(flushed) == 2


# Artefacts of which files were removed on purpose: sound, told from damaged ones, and made whole again.

FILES = {"record.txt": "numbers", "step_1/weights": "w" * 100, "state/optimizer": "s" * 200}


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


@pytest.fixture(name="artifact")
def _artifact(store: Store) -> Artifact:
    return publish_training(store)


def publish_training(store: Store) -> Artifact:
    held = store.claim("training", "a")
    assert held is not None
    with held:
        output = store.empty_output(held, "training", "a")
        for name, text in FILES.items():
            (output / name).parent.mkdir(exist_ok=True)
            (output / name).write_text(text, encoding="utf-8")
        return store.publish(held, "training", "a", {"result": {}})


def prune(store: Store, *names: str) -> None:
    held = store.claim("training", "a")
    assert held is not None
    with held:
        store.prune(held, "training", "a", names)


def found(store: Store) -> Artifact:
    artifact = store.find("training", "a")
    assert artifact is not None
    return artifact


def test_pruned_files_are_no_damage_and_other_missing_files_are(store: Store, artifact: Artifact) -> None:
    prune(store, "state/optimizer")
    assert not (artifact.path / "state").exists()
    assert store.damage("training", "a") is None
    (artifact.path / "step_1/weights").unlink()
    assert store.damage("training", "a") == "step_1/weights is missing"


def test_a_pruned_artefact_keeps_its_record_and_is_read_by_no_stage(store: Store, artifact: Artifact) -> None:
    prune(store, "step_1/weights")
    assert not found(store).whole
    assert set(found(store).record()["files"]) == set(FILES)
    with pytest.raises(InfrastructureError, match="lacks files that were removed; the same command makes it again"):
        store.require("training", "a")


def test_a_kill_between_the_note_and_the_removal_leaves_a_sound_artefact(
    store: Store, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, *, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    held = store.claim("training", "a")
    assert held is not None
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            store.prune(held, "training", "a", ["step_1/weights"])
    assert found(store).whole, "all its files are there"
    with held:
        store.prune(held, "training", "a", ["step_1/weights"])
    assert not (artifact.path / "step_1").exists()


def test_making_it_again_takes_the_place_of_what_was_left(store: Store, artifact: Artifact) -> None:
    prune(store, "step_1/weights", "state/optimizer")
    assert publish_training(store).whole
    assert {name: (found(store).path / name).read_text(encoding="utf-8") for name in FILES} == FILES
    assert not store.pruned_note("training", "a").exists()
    assert list((store.root / "partial").iterdir()) == []


def test_a_whole_artefact_is_never_replaced(store: Store, artifact: Artifact) -> None:
    with pytest.raises(InfrastructureError, match="is there already"):
        publish_training(store)


def test_nothing_is_removed_under_a_claim_that_was_lost(store: Store, artifact: Artifact) -> None:
    held = store.claim("training", "a")
    assert held is not None
    held.path.unlink()
    with pytest.raises(ClaimLostError):
        store.prune(held, "training", "a", ["state/optimizer"])
    with pytest.raises(ClaimLostError):
        store.remove(held, "training", "a")
    assert {name for name in FILES if (artifact.path / name).is_file()} == set(FILES)


# Files that change while they are read, or may have.


def test_a_file_is_known_to_be_written_by_any_of_its_times_and_not_by_its_mode_or_names() -> None:
    before = [5, 10, 10, 7, 0o644, 0, 0, 1]
    cases = {(5, 10, 20, 7, 0o644, 0, 0, 1): True, (5, 10, 20, 7, 0o600, 0, 0, 1): False}
    cases |= {(5, 10, 20, 7, 0o644, 0, 0, 2): False, (5, 11, 11, 7, 0o600, 0, 0, 1): True}
    assert {now: files.was_written(before, list(now)) for now in cases} == cases


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.write_text("one", encoding="utf-8")
    monkeypatch.setattr(files, "sha256", lambda path: path.write_text("other") and "0")
    with pytest.raises(DataError, match="changed while it was read"):
        files.FileDigests(tmp_path / "cache").of(source)


@pytest.mark.parametrize("written_late", [False, True])
def test_an_artefact_just_written_is_not_remembered_as_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_late: bool
) -> None:
    if written_late:
        monkeypatch.setattr("paribus.store.artifacts.SETTLED_NANOSECONDS", -(10**12))
        monkeypatch.setattr("paribus.store.artifacts.sync_tree", lambda output: (output / "data").write_text("Content"))
    store = Store(tmp_path)
    publish(store)
    assert written_late or store.memory("corpus", KEY).read()["files"] == {}
    assert store.damage("corpus", KEY) == ("data differs from its digest" if written_late else None)
