"""Flags: those that are known do what they say, and any other is refused with what was meant before anything runs."""

import shlex
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import VERBS, main
from paribus.config.arguments import broken_lists, parse, read_options
from paribus.errors import ConfigurationError

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


def test_a_flag_used_wrongly_is_refused_by_name() -> None:
    refusals = {
        ("--cfg",): "--cfg needs a value: job, hydra or all",
        ("-m", "--config-dir"): "--config-dir needs a value: a directory",
        ("--config-dir", "seed=3"): "--config-dir needs a value",
        ("--config-dir=",): "--config-dir needs a value",
        ("--multirun=yes",): "--multirun has no value; leave =yes away",
        ("--resolve",): "--resolve goes with --cfg only",
        ("--resume", "--seed=3"): "--resume is no flag of paribus run.*\n.*say seed=3",
        ("--why",): "it is one of paribus report",
    }
    for words, message in refusals.items():
        with pytest.raises(ConfigurationError, match=f"(?s){message}"):
            parse(words)


@pytest.mark.parametrize(
    "arguments", [("--cfg", "job"), ("--cfg=job",), ("-c", "job"), ("-c=job",), ("-m", "--cfg", "job")]
)
def test_each_spelling_of_a_flag_that_shows_something_runs_nothing(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *TINY, f"root={tmp_path}/root", "seed=7", *arguments]) == 0
    assert "seed: 7" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_short_options_are_refused_by_what_is_wrong_with_them() -> None:
    known = ("root", "tracking.uri")
    assert read_options(["root=a", "root=a", "tracking.uri=b=c"], known) == {"root": "a", "tracking.uri": "b=c"}
    for arguments, message in {
        ("--root=a",): "did you mean root=a",
        ("--uri=a",): "did you mean tracking.uri=a",
        ("rot=a",): "did you mean root=a",
        ("root",): "did you mean root=...",
        ("root=",): "names no value",
        ("root=a", "root=b"): "given twice, as 'a' and as 'b'",
    }.items():
        with pytest.raises(ConfigurationError, match=message):
            read_options(arguments, known)


def test_a_list_that_the_shell_has_torn_is_shown_whole() -> None:
    refusals = {
        "-m arm=bpe, lbpe": "'arm=bpe, lbpe' has a space, where the shell ends a word; leave it out: arm=bpe,lbpe",
        "-m arm=bpe , lbpe, unigram seed=0,1": "leave it out: arm=bpe,lbpe,unigram",
        "-m arm= bpe": "leave it out: arm=bpe",
        "corpus.paths=[a, b]": "leave it out: corpus.paths=[a,b]",
        "-m arm=bpe, seed=1": "'arm=bpe,' ends in a comma; name what follows, or leave it out: arm=bpe",
    }
    for typed, message in refusals.items():
        with pytest.raises(ConfigurationError) as refused:
            compose_command(parse(typed.split(" ")))
        assert str(refused.value).endswith(message), typed
    whole = (
        "last tracking.uri=",
        "corpus.paths=[a,b] last",
        "corpus.paths='[a, b]'",
        "experiment.title= ~corpus.limit",
    )
    assert [typed for typed in whole if broken_lists(shlex.split(typed))] == []
