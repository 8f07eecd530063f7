"""Flags: those that are known do what they say, and any other is refused with what was meant before anything runs."""

from pathlib import Path

import pytest

from paribus.cli import VERBS, main

TINY = ("scale=tiny", "corpus=pydocs_small", "tracking=none")
WITH_CONFIGURATION = ("run", "plan", "status", "report", "orders")
UNKNOWN = [
    (("--seed=3",), "say seed=3"),
    (("--seed", "3"), "say seed=3"),
    (("--root=DIR",), "say root=DIR"),
    (("--tokenizer=bpe",), "say tokenizer=bpe"),
    (("--max-epochs", "2"), "say budget.max_epochs=2"),
    (("--resume",), "known: --"),
    (("-j", "4"), "known: --"),
    (("--multi-run",), "did you mean --multirun"),
    (("--nothing-like-it",), "known: --"),
    (("--",), "known: --"),
    (("--run",), "is no flag"),
]


def test_unknown_flags_are_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in WITH_CONFIGURATION:
        for flags, meant in UNKNOWN:
            assert main([verb, *TINY, f"root={tmp_path}/root", *flags]) == 2
            captured = capsys.readouterr()
            assert meant in captured.err and captured.out == "", (verb, flags)
    for verb in VERBS.keys() - WITH_CONFIGURATION:
        assert main([verb, *({"rerun": ["0123456789abcdef"]}.get(verb, [])), "--force"]) == 2
        assert "--force" in capsys.readouterr().err, verb
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("--cfg", "job"), ("--cfg=job",), ("-c", "job"), ("-c=job",), ("-m", "--cfg", "job")]
)
def test_each_spelling_of_a_flag_that_shows_something_runs_nothing(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *TINY, f"root={tmp_path}/root", "seed=7", *arguments]) == 0
    assert "seed: 7" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
