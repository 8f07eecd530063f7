"""A store that may only be read: what reads it works, and what would write says in a line why it cannot."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import main
from paribus.config.arguments import parse
from paribus.pipeline.clean import examine
from paribus.pipeline.prepare import prepare_runs
from paribus.store.artifacts import Store
from paribus.store.claims import acquire, is_held
from support.finished_runs import finish

pytestmark = pytest.mark.usefixtures("without_plots")
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
    tmp_path: Path, in_directory_with_text: None, read_only: Protect, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    publish(Store(root / "artifacts"), "corpus")
    read_only(root)
    common = ("scale=tiny", "corpus=files", "corpus.paths=[texts.txt]", "tracking=none", f"root={root}")
    before = sorted(root.rglob("*"))
    ended = {verb: main([verb, *common]) for verb in ("plan", "status", "run")}
    printed = capsys.readouterr()
    assert ended == {"plan": 1, "status": 1, "run": 2}
    (line,) = printed.err.strip().splitlines()
    assert line.startswith(f"paribus run: root: '{root}' cannot hold an output root (")
    assert line.endswith("; name another with root=...")
    assert sorted(root.rglob("*")) == before


OWN = ("scale=tiny", "corpus=files", "corpus.paths=[texts.txt]", "tracking=none")


@pytest.fixture
def settled_text(in_directory_with_text: None) -> None:
    """A text so old that its digest may be remembered."""
    os.utime("texts.txt", (1e9, 1e9))


def test_verbs_that_only_read_make_no_root(
    tmp_path: Path, settled_text: None, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = {("plan",): 0, ("status",): 1, ("report",): 2, ("report", "--why"): 0}
    assert {verb: main([*verb, *OWN, f"root={tmp_path}/root"]) for verb in statuses} == statuses
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]


def test_a_report_of_a_root_that_may_only_be_read_is_printed_and_written_elsewhere(
    tmp_path: Path, read_only: Protect, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    arguments = ("-m", "scale=tiny", "corpus=pydocs_small", "encoder=merge_rank,longest_first", f"root={root}")
    for number, run in enumerate(prepare_runs(compose_command(parse(arguments)))):
        finish(run, number, tmp_path / "made")
    before = sorted(root.rglob("*"))
    read_only(root)
    assert main(["report", *arguments]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "longest_first" in printed
    assert f"{root} may not be written, so the report is not there" in printed
    (directory,) = elsewhere.glob("paribus-report-*")
    assert str(directory / "report.html") in printed
    assert {path.name for path in directory.iterdir()} >= {"report.html", "report.csv", "report.md", "tables.tex"}
    assert sorted(root.rglob("*")) == before
