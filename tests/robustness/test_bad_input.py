"""Bad input: a clear error that names file and line or configuration path, a failing exit, nothing half-made."""

import gzip
from pathlib import Path

import pytest

from paribus.cli import main
from support.command_line import paribus

BASE = ("run", "scale=tiny", "corpus=files", "tracking=none")


def refused(directory: Path, *overrides: str, expect: int) -> str:
    done = paribus(directory, *BASE, *overrides, expect=expect)
    for artifact in (directory / "paribus_runs/artifacts").glob("*/*/"):
        assert artifact.parent.name in ("claims", "partial") or (artifact / "record.json").is_file()
    return " ".join((done.stdout + done.stderr).split())


def test_missing_files_and_unknown_tasks_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("some text", encoding="utf-8")
    refusals = {
        ("corpus.paths=[absent.jsonl]",): "absent.jsonl",
        ("corpus.paths=[some.txt]", "evaluation.tasks=[boolq]"): "evaluation.data",
        (
            "corpus.paths=[some.txt]",
            "evaluation.tasks=[continuaton]",
        ): "unknown task 'continuaton'; nearest: continuation",
    }
    for overrides, message in refusals.items():
        assert message in refused(tmp_path, *overrides, expect=2), overrides
    assert not (tmp_path / "paribus_runs/artifacts").exists()


def test_an_unreadable_file_is_refused_by_name(tmp_path: Path) -> None:
    files = {
        "empty.txt": (b"", "empty.txt"),
        "latin.txt": (b"caf\xe9 and more", "UTF-8"),
        "broken.jsonl": (b'{"text": "a"}\n{"text": \n', "line 2"),
        "cut.txt.gz": (gzip.compress(b"some text " * 1000, mtime=0)[:-20], "cut.txt.gz"),
    }
    for name, (content, message) in files.items():
        (tmp_path / name).write_bytes(content)
        printed = refused(tmp_path, f"corpus.paths=[{name}]", expect=1 if content else 2)
        assert name in printed and message in printed


def test_a_corpus_smaller_than_one_context_is_refused(tmp_path: Path) -> None:
    lines = "".join(f'{{"text": "word {number}"}}\n' for number in range(8))
    (tmp_path / "small.jsonl").write_text(lines, encoding="utf-8")
    corpus = ("corpus.paths=[small.jsonl]", "corpus.heldout=0.3", "corpus.near_duplicate=null", "evaluation.tasks=[]")
    overrides = (*corpus, "model.context_length=512", "budget.tokens=10K")
    assert "`model.context_length` = 512 needs 513" in refused(tmp_path, *overrides, expect=1)


def test_every_verb_refuses_a_root_that_is_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    configured = ("scale=tiny", "corpus=files", "corpus.paths=[file]", "tracking=none")
    verbs = [(verb, *configured) for verb in ("plan", "status", "report", "run", "orders")]
    for verb in [*verbs, ("rerun", "0123456789abcdef"), ("status",), ("clean",)]:
        assert main([*verb, "root=file"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"paribus {verb[0]}: root: '{tmp_path / 'file'}' is no directory;")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_root_that_is_a_link_to_what_is_not_there_yet_is_a_root_to_be_made(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path / "later")
    (tmp_path / "some.txt").write_text("some text", encoding="utf-8")
    paribus(tmp_path, "plan", *BASE[1:], "corpus.paths=[some.txt]", "root=linked")
    assert not (tmp_path / "later").exists()
