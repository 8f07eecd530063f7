"""Artefacts of which files were removed on purpose: sound, told from damaged ones, and made whole again."""

from pathlib import Path

import pytest

from paribus.errors import InfrastructureError
from paribus.store.artifact import Artifact, Store
from paribus.store.claim import ClaimLostError
from paribus.store.doctor import examine

FILES = {"record.txt": "numbers", "step_1/weights": "w" * 100, "state/optimizer": "s" * 200}


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


@pytest.fixture(name="artifact")
def _artifact(store: Store) -> Artifact:
    return publish(store)


def publish(store: Store) -> Artifact:
    held = store.claim("training", "a")
    assert held is not None
    with held:
        output = store.empty_output(held, "training", "a")
        for name, text in FILES.items():
            (output / name).parent.mkdir(exist_ok=True)
            (output / name).write_text(text, encoding="utf-8")
        return store.publish(held, "training", "a", {"result": {}})


def prune(store: Store, *names: str, readable: bool) -> None:
    held = store.claim("training", "a")
    assert held is not None
    with held:
        store.prune(held, "training", "a", names, readable=readable)


def test_what_was_pruned_is_no_damage_and_what_else_is_missing_is(store: Store, artifact: Artifact) -> None:
    prune(store, "state/optimizer", readable=True)
    assert not (artifact.path / "state").exists()
    assert store.damage("training", "a") is None
    found = store.find("training", "a")
    assert found is not None
    assert found.readable
    assert store.require("training", "a") == found
    (artifact.path / "step_1/weights").unlink()
    assert store.damage("training", "a") == "step_1/weights is missing"


def test_an_artefact_pruned_of_what_is_read_keeps_its_record_alone(store: Store, artifact: Artifact) -> None:
    prune(store, "step_1/weights", readable=False)
    found = store.find("training", "a")
    assert found is not None
    assert not found.readable
    assert set(found.record()["files"]) == set(FILES)
    with pytest.raises(InfrastructureError, match="was pruned of what is to be read; the same command makes it again"):
        store.require("training", "a")


def test_a_kill_while_pruning_leaves_it_sound(
    store: Store, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, *, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    held = store.claim("training", "a")
    assert held is not None
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            store.prune(held, "training", "a", ["step_1/weights"], readable=False)
    found = store.find("training", "a")
    assert found is not None
    assert found.readable, "all its files are there"
    with held:
        store.prune(held, "training", "a", ["step_1/weights"], readable=False)
    assert not (artifact.path / "step_1").exists()


def test_the_doctor_finds_nothing_wrong_with_it_but_with_a_changed_rest(store: Store, artifact: Artifact) -> None:
    prune(store, "state/optimizer", readable=True)
    said: list[str] = []
    assert examine(store, said.append) == 0
    assert said == ["artefacts checked: 1, damaged: 0, unfinished leftovers of dead processes removed: 0"]
    (artifact.path / "record.txt").write_text("others!", encoding="utf-8")
    assert examine(store, said.append) == 1
    assert not store.pruned_note("training", "a").exists()


def test_making_it_again_takes_the_place_of_what_was_left(store: Store, artifact: Artifact) -> None:
    prune(store, "step_1/weights", "state/optimizer", readable=False)
    assert publish(store).readable
    found = store.find("training", "a")
    assert found is not None
    assert found.readable
    assert {name: (found.path / name).read_text(encoding="utf-8") for name in FILES} == FILES
    assert not store.pruned_note("training", "a").exists()
    assert list((store.root / "partial").iterdir()) == []


def test_what_is_readable_and_not_whole_is_replaced_too(store: Store, artifact: Artifact) -> None:
    prune(store, "state/optimizer", readable=True)
    before = store.find("training", "a")
    assert before is not None
    assert (before.readable, before.whole) == (True, False)
    assert publish(store).whole
    found = store.find("training", "a")
    assert found is not None
    assert found.whole


def test_a_whole_artefact_is_never_replaced(store: Store, artifact: Artifact) -> None:
    with pytest.raises(InfrastructureError, match="is there already"):
        publish(store)


def test_a_removed_artefact_leaves_nothing(store: Store, artifact: Artifact) -> None:
    held = store.claim("training", "a")
    assert held is not None
    with held:
        store.remove(held, "training", "a")
    assert store.find("training", "a") is None
    assert {path.name for path in store.root.rglob("*") if path.is_file()} <= {".lock", ".clock"}


def test_nothing_is_removed_under_a_claim_that_was_lost(store: Store, artifact: Artifact) -> None:
    held = store.claim("training", "a")
    assert held is not None
    held.path.unlink()
    with pytest.raises(ClaimLostError):
        store.prune(held, "training", "a", ["state/optimizer"], readable=True)
    with pytest.raises(ClaimLostError):
        store.remove(held, "training", "a")
    assert {name for name in FILES if (artifact.path / name).is_file()} == set(FILES)
