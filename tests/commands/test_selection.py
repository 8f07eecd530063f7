"""What `status` and `report` are asked about: overrides or a name."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.cli import main
from paribus.pipeline.prepared import run_identity
from paribus.pipeline.records import files_of
from support.recorded_sweeps import OVERRIDES, finished_sweep, record_sweep

pytestmark = pytest.mark.usefixtures("in_directory_with_text")


def test_the_last_sweep_and_a_run_by_its_beginning_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_sweep(tmp_path / "root", "seed=7")
    identifier, runs = record_sweep(tmp_path / "root", "-m", "tokenizer=bpe,scaffold_bpe")
    assert main(["status", "last", "root=root"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(f"{identifier}  sweep tokenizer, 2 runs, given ")
    assert [run.run_id in shown for run in runs] == [True, True]
    assert main(["status", runs[1].run_id[:8], "root=root"]) == 1
    shown = capsys.readouterr().out
    assert [run.run_id in shown for run in runs] == [False, True]


def test_a_root_that_was_moved_is_looked_at_where_it_is_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_sweep(tmp_path / "root", "seed=1")
    (tmp_path / "root").rename(tmp_path / "moved")
    assert main(["status", "last", "root=moved"]) == 1
    assert "not started" in capsys.readouterr().out
    assert not (tmp_path / "root").exists()


def test_a_name_is_given_alone_and_names_a_sweep_or_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_sweep(tmp_path / "paribus_runs", "seed=1")
    for word, message in {"seed=3": "leave seed=3 out", "-m": "leave -m out", "first": "two names"}.items():
        assert main(["status", "last", word]) == 2
        assert message in capsys.readouterr().err
    for name in ("../x", "a;touch x", "a\0b", "x\x1b[2J", "x" * 300, "", " ", "\udcff", "*"):
        assert main(["status", name]) == 2, name
        message = capsys.readouterr().err
        assert "Traceback" not in message and "\x1b" not in message


def test_a_sweep_that_would_be_another_now_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_sweep(tmp_path / "paribus_runs", "seed=1")
    (tmp_path / "texts.txt").write_text("another text", encoding="utf-8")
    assert main(["status", "last"]) == 1
    assert "1 of its runs would be others now" in capsys.readouterr().out


@pytest.mark.parametrize("text", [None, "another text"], ids=["gone", "changed"])
def test_a_name_selects_the_recorded_runs_after_their_files_changed(
    text: str | None, tmp_path: Path, without_plots: None, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = finished_sweep(tmp_path / "made", "-m", "seed=0,1")
    assert main(["report", "last"]) == 0
    table = capsys.readouterr().out.split("ago\n")[1]
    (tmp_path / "texts.txt").unlink()
    if text:
        (tmp_path / "texts.txt").write_text(text, encoding="utf-8")
    moved = "files of 2 of its runs are gone or others now: this is how those stand that were made of them"
    assert main(["status", "last"]) == 0
    shown = capsys.readouterr().out
    assert moved in shown and all(run.run_id in shown for run in runs)
    assert main(["report", "last"]) == 0
    printed, same = capsys.readouterr().out.split("would make others\n")
    assert moved in printed and same == table
    assert main(["status", runs[0].run_id]) == 0
    # Overrides are a question about the files of now.
    assert main(["status", *OVERRIDES]) == 1


def test_recorded_fingerprints_are_not_used_for_a_group_that_changed(tmp_path: Path) -> None:
    (run,) = finished_sweep(tmp_path / "made")
    config = run.job.config
    record = {"identity": json.loads(json.dumps(run_identity(config, run.nodes)))}
    assert files_of(record, config) == record["identity"]["fingerprints"] != {}
    assert files_of(record, replace(config, corpus=replace(config.corpus, heldout=7))) == {}
    assert files_of({}, config) == {}


def test_status_never_mixes_runs_on_different_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without a record takes the text that its sweep recorded; else all take the files of now."""
    runs = finished_sweep(tmp_path / "made", "-m", "seed=0,1")
    shutil.rmtree(tmp_path / "paribus_runs" / "runs" / runs[1].run_id)
    (tmp_path / "texts.txt").write_text("another text", encoding="utf-8")
    main(["status", "last"])
    printed = capsys.readouterr().out
    assert all(run.run_id in printed for run in runs) and "files of 2 of its runs are gone or others now" in printed
    path = tmp_path / "paribus_runs" / "runs" / runs[0].run_id / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["identity"]["fingerprints"] = {"corpus": {"files": []}}
    path.write_text(json.dumps(record), encoding="utf-8")
    main(["status", "last"])
    printed = capsys.readouterr().out
    assert not any(run.run_id in printed for run in runs) and "2 of its runs would be others now" in printed


def test_a_finished_run_is_not_checked_against_the_current_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_sweep(tmp_path / "made", "-m", "seed=0,1")
    broken = [("tokenizer.path", "x.json: no complete JSON")]
    monkeypatch.setattr("paribus.pipeline.prepare.check_tokenizer", lambda config: broken)
    assert main(["status", "last"]) == 0
    assert main(["status", *OVERRIDES]) == 2
    assert "no complete JSON" in capsys.readouterr().err
