"""A store that may only be read: what reads it works, and what would write says in a line why it cannot."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.cli import main
from paribus.store.artifact import Store
from paribus.store.claim import acquire, is_held
from paribus.store.doctor import examine

Protect = Callable[[Path], None]
KEY = "f" * 64


def publish(store: Store, stage: str) -> None:
    held = store.claim(stage, KEY)
    assert held is not None
    with held:
        (store.empty_output(held, stage, KEY) / "data").write_text("content", encoding="utf-8")
        store.publish(held, stage, KEY, {"result": {"documents": 1}})


def test_artefacts_of_a_read_only_store_are_verified_and_used(tmp_path: Path, read_only: Protect) -> None:
    store = Store(tmp_path / "artifacts")
    for stage in ("corpus", "tokens"):
        publish(store, stage)
    (store.path("tokens", KEY) / "data").write_text("Content", encoding="utf-8")
    assert acquire(store.claim_path("order", KEY), 30.0) is not None
    read_only(tmp_path)
    found = store.find("corpus", KEY)
    assert found is not None and found.record()["result"] == {"documents": 1}
    assert store.damage("tokens", KEY) == "data differs from its digest"
    assert is_held(store.claim_path("order", KEY), 30.0)
    with pytest.raises(OSError):
        store.claim("order", "e" * 64)
    with pytest.raises(OSError):
        examine(store, lambda line: None)


def test_verbs_on_a_read_only_root_say_in_a_line_what_they_cannot_write(
    tmp_path: Path, read_only: Protect, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text", encoding="utf-8")
    root = tmp_path / "root"
    publish(Store(root / "artifacts"), "corpus")
    read_only(root)
    common = ("scale=tiny", "corpus=files", "corpus.paths=[texts.txt]", "tracking=none", f"root={root}")
    before = sorted(root.rglob("*"))
    ended = {verb: main([verb, *common]) for verb in ("plan", "status", "run", "doctor")}
    told = capsys.readouterr()
    assert ended == {"plan": 0, "status": 1, "run": 1, "doctor": 0}
    (line,) = told.err.strip().splitlines()
    assert line.startswith("paribus run: ") and str(root) in line and "may not be written" in line
    assert sorted(root.rglob("*")) == before
