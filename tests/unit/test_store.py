"""The store on its own: publication in one step, verification, and what a full disk leaves."""

import errno
import subprocess
from pathlib import Path

import pytest

from paribus.store import atomic
from paribus.store.artifact import Artifact, Store
from paribus.store.doctor import examine
from paribus.store.provenance import git_state, provenance

KEY = "f" * 64


def publish(store: Store, text: str = "content") -> Artifact:
    held = store.claim("corpus", KEY)
    assert held is not None
    with held:
        output = store.empty_output(held, "corpus", KEY)
        (output / "data").write_text(text, encoding="utf-8")
        return store.publish(held, "corpus", KEY, {"result": {"documents": 1}})


def test_what_has_no_record_does_not_exist(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.path("corpus", KEY).mkdir(parents=True)
    assert store.find("corpus", KEY) is None


def test_an_artefact_is_found_with_its_record_and_leaves_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store)
    found = store.find("corpus", KEY)
    assert found is not None
    assert found.record()["result"] == {"documents": 1}
    assert set(found.record()["files"]) == {"data"}
    assert list((tmp_path / "partial").iterdir()) == []
    assert not store.claim_path("corpus", KEY).exists()


def test_a_directory_that_is_there_already_is_not_replaced(tmp_path: Path) -> None:
    for name, text in (("first", "1"), ("second", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text(text, encoding="utf-8")
    assert atomic.publish_directory(tmp_path / "first", tmp_path / "target")
    assert not atomic.publish_directory(tmp_path / "second", tmp_path / "target")
    assert (tmp_path / "target" / "data").read_text(encoding="utf-8") == "1"


def test_the_doctor_finds_a_flipped_byte_and_sets_the_artefact_aside(tmp_path: Path) -> None:
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


def test_the_doctor_keeps_resumable_work_and_removes_the_rest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (store.work("checkpoints", KEY) / "step_00000001").mkdir()
    for stage in ("checkpoints", "tokens"):
        held = store.claim(stage, KEY)
        assert held is not None
        with held:
            store.empty_output(held, stage, KEY)
    assert examine(store, lambda text: None) == 0
    assert [path.name for path in store.work("checkpoints", KEY).parent.iterdir()] == ["work"]
    assert (store.work("checkpoints", KEY) / "step_00000001").is_dir()
    assert sorted(path.name for path in (tmp_path / "partial").iterdir()) == [f"checkpoints-{KEY}"]


def test_a_full_disk_leaves_the_old_file_and_no_fragment(small_disk: Path) -> None:
    atomic.write_json(small_disk / "record.json", {"a": 1})
    with pytest.raises(OSError) as caught:
        atomic.write_text(small_disk / "record.json", "x" * 3_000_000)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError):
        atomic.write_bytes(small_disk / "record.json", bytes(3_000_000))
    assert [path.name for path in small_disk.iterdir()] == ["record.json"]
    assert "1" in (small_disk / "record.json").read_text(encoding="utf-8")


def test_provenance_names_the_versions_and_the_host() -> None:
    found = provenance()
    assert found["packages"]["numpy"]
    assert found["host"]


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
def test_what_is_written_in_one_step_is_whole_or_as_it_was(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"

    def write(aside: Path, text: str) -> None:
        if kind == "directory":
            aside.mkdir()
        (aside / "inside" if kind == "directory" else aside).write_text(text, encoding="utf-8")

    def stop() -> None:
        with atomic.replacing(target) as aside:
            write(aside, "half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []
    with atomic.replacing(target) as aside:
        write(aside, "whole")
        assert not target.exists()
    assert list(tmp_path.iterdir()) == [target]
    read = target / "inside" if kind == "directory" else target
    with pytest.raises(KeyboardInterrupt):
        stop()
    assert read.read_text(encoding="utf-8") == "whole" and list(tmp_path.iterdir()) == [target]
