"""A sweep whose table could not be made, told before it takes hours."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from paribus.commands import run as sweep
from paribus.config.arguments import parse


class BegunError(Exception):
    """The first run would begin now."""


def begin(*_: object) -> bool:
    raise BegunError


@pytest.mark.parametrize(("label", "told"), [("unigram", True), ("bpe", False)])
def test_a_run_says_that_no_row_is_the_baseline_before_it_begins(
    label: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep._Launches, "carry_out", begin)
    words = ["-m", "scale=tiny", "corpus=pydocs_small", "tracking=none", "tokenizer=bpe,bytes", f"root={tmp_path}"]
    shown = io.StringIO()
    with pytest.raises(BegunError):
        command = parse([*words, f"+experiment.table.baseline={{tokenizer:{label}}}"])
        sweep.run_command(command, Console(file=shown, width=200))
    assert ("no table of these runs alone: experiment.table.baseline: no row has" in shown.getvalue()) == told
