"""The columns of `paribus list` in terminals of every width."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from paribus.commands.kept.listing import Line, listing
from paribus.pipeline.record.inventory import DONE

SCORES = "boolq 0.5012, hellaswag 0.2514, winogrande 0.4988, race_high 0.2301, race_middle 0.2417"


def line(name: str, identifier: str, scores: str = "") -> Line:
    sized = {"own": "47.1 MiB", "shared": "99.3 MiB", "age": "23 min", "bits/byte": "2.1826"}
    return Line("run", {"name": name, "id": identifier, "state": DONE, "scores": scores, **sized}, DONE, within=True)


@pytest.fixture(name="terminal")
def _terminal(monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.delenv("COLUMNS", raising=False)
    return Console(file=io.StringIO(), width=80, force_terminal=True)


def test_names_go_on_below_and_lines_fit(terminal: Console) -> None:
    names = ["seed=0 scaffold_bpe merge_rank", "seed=0 scaffold_bpe longest_first"]
    heading, *shown = listing(
        [line(name, str(place) * 16) for place, name in enumerate(names)], terminal
    ).plain.splitlines()
    assert max(map(len, shown)) <= 80
    column = heading.index("id")
    assert " ".join(text[:column].strip() for text in shown) == " ".join(names)


def test_scores_stand_below_their_run_where_the_line_is_full(terminal: Console) -> None:
    shown = listing([line("bpe seed=0", "0" * 16, SCORES), line("bpe seed=1", "1" * 16)], terminal).plain.splitlines()
    assert max(map(len, shown)) <= 80
    assert " ".join(text.strip() for text in shown[2:4]) == SCORES
    assert shown[4].split()[:2] == ["bpe", "seed=1"]


def test_columns_stand_below_each_other_with_names_of_wide_characters(terminal: Console) -> None:
    runs = [line("中文 分詞", "0" * 16), line("English", "1" * 16)]
    heading, *shown = listing(runs, terminal).plain.splitlines()
    ends = [cell_len(text) for text in shown]
    assert ends[0] == ends[1] == len(heading)


def test_what_another_program_reads_is_one_line_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    name = "dropout_each_epoch scaffold_bpe seed=0"
    shown = listing([line(name, "0" * 16, SCORES)], Console(file=io.StringIO())).plain.splitlines()
    assert len(shown) == 2
    assert name in shown[1]
    assert SCORES in shown[1]
