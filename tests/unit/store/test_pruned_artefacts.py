"""Artefacts of which files were removed on purpose: sound, told from damaged ones, and made whole again."""

from pathlib import Path

import pytest

from paribus.errors import InfrastructureError
from paribus.pipeline.clean import examine
from paribus.store.artifacts import Artifact, Store
from paribus.store.claims import ClaimLostError

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


def prune(store: Store, *names: str) -> None:
    held = store.claim("training", "a")
    assert held is not None
    with held:
        store.prune(held, "training", "a", names)


def found(store: Store) -> Artifact:
    artifact = store.find("training", "a")
    assert artifact is not None
    return artifact


def test_what_was_pruned_is_no_damage_and_what_else_is_missing_is(store: Store, artifact: Artifact) -> None:
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


def test_pruning_more_later_adds_to_what_is_gone(store: Store, artifact: Artifact) -> None:
    prune(store, "step_1/weights")
    prune(store, "state/optimizer")
    assert store.pruned("training", "a") == {"step_1/weights", "state/optimizer"}
    assert store.damage("training", "a") is None


def test_a_lost_note_turns_what_was_pruned_into_damage(store: Store, artifact: Artifact) -> None:
    prune(store, "state/optimizer")
    store.pruned_note("training", "a").unlink()
    assert store.damage("training", "a") == "state/optimizer is missing"


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


def test_a_pruned_artefact_is_verified_by_what_is_left(store: Store, artifact: Artifact) -> None:
    prune(store, "state/optimizer")
    lines: list[str] = []
    assert examine(store, lines.append) == 0
    assert lines == ["artefacts checked: 1, damaged: 0"]
    (artifact.path / "record.txt").write_text("others!", encoding="utf-8")
    assert examine(store, lines.append) == 1
    assert not store.pruned_note("training", "a").exists()


def test_making_it_again_takes_the_place_of_what_was_left(store: Store, artifact: Artifact) -> None:
    prune(store, "step_1/weights", "state/optimizer")
    assert publish(store).whole
    assert {name: (found(store).path / name).read_text(encoding="utf-8") for name in FILES} == FILES
    assert not store.pruned_note("training", "a").exists()
    assert list((store.root / "partial").iterdir()) == []


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
        store.prune(held, "training", "a", ["state/optimizer"])
    with pytest.raises(ClaimLostError):
        store.remove(held, "training", "a")
    assert {name for name in FILES if (artifact.path / name).is_file()} == set(FILES)
