"""Bad input: a clear error that names file and line or configuration path, a failing exit, nothing half-made."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.cli import main

BASE = ("scale=tiny", "corpus=files", "tracking=none")
Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """What a run prints that is given in `tmp_path`, ends with the expected status and leaves nothing half-made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.txt").write_text("some text", encoding="utf-8")

    def refused(*overrides: str, expect: int) -> str:
        assert main(["run", *BASE, *overrides]) == expect
        for artifact in Path("paribus_runs/artifacts").glob("*/*/"):
            assert artifact.parent.name in ("claims", "partial") or (artifact / "record.json").is_file()
        return " ".join("".join(capsys.readouterr()).split())

    return refused


def test_missing_files_and_unknown_tasks_are_refused_before_anything_runs(refused: Refused) -> None:
    refusals = {
        "corpus.paths=[absent.jsonl]": "absent.jsonl",
        "evaluation.tasks=[boolq]": "evaluation.data",
        "evaluation.tasks=[continuaton]": "unknown task 'continuaton'; nearest: continuation",
    }
    for override, message in refusals.items():
        assert message in refused("corpus.paths=[some.txt]", override, expect=2), override
    assert not Path("paribus_runs/artifacts").exists()


def test_an_unreadable_file_is_refused_by_name(refused: Refused) -> None:
    files = {
        "empty.txt": (b"", "empty.txt"),
        "latin.txt": (b"caf\xe9 and more", "UTF-8"),
        "broken.jsonl": (b'{"text": "a"}\n{"text": \n', "line 2"),
        "cut.txt.gz": (gzip.compress(b"some text " * 1000, mtime=0)[:-20], "cut.txt.gz"),
    }
    for name, (content, message) in files.items():
        Path(name).write_bytes(content)
        printed = refused(f"corpus.paths=[{name}]", expect=1 if content else 2)
        assert name in printed and message in printed


def test_a_corpus_smaller_than_one_context_is_refused(refused: Refused) -> None:
    lines = "".join(f'{{"text": "word {number}"}}\n' for number in range(8))
    Path("small.jsonl").write_text(lines, encoding="utf-8")
    corpus = ("corpus.paths=[small.jsonl]", "corpus.heldout=0.3", "corpus.near_duplicate=null", "evaluation.tasks=[]")
    overrides = (*corpus, "model.context_length=512", "budget.tokens=10K")
    assert "`model.context_length` = 512 needs 513" in refused(*overrides, expect=1)


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


def test_a_root_that_is_a_link_to_what_is_not_there_yet_is_a_root_to_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("linked").symlink_to("later")
    Path("some.txt").write_text("some text", encoding="utf-8")
    assert main(["plan", *BASE, "corpus.paths=[some.txt]", "root=linked"]) == 0
    assert not Path("later").exists()
