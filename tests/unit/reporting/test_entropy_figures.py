"""The pictures and numbers of candidate spans and of predictive entropy, from numbers alone."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from paribus.reporting.plots.entropy import EntropyLine, entropy_plot, pieces
from paribus.reporting.plots.picture import Plot, style
from paribus.reporting.tokenizers.candidates import CandidateScores, write_candidate_report
from paribus.reporting.tokenizers.entropy import write_entropy_report

SCORES = CandidateScores(
    information=np.array([-20.0, -3.25, 0.0, 4.0]),
    left_entropy=np.array([-2e-16, 1.0, 1.0, 2.5]),
    right_entropy=np.array([0.0, 0.0, 0.0, 0.5]),
    by_length={2: 3, 3: 1},
)
LINE = EntropyLine("中国ab人", (3.0, 1.0, 2.5, 1.5, 4.0, 0.5), (2, 4))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def styled(lines: Sequence[EntropyLine]) -> Plot:
    with mpl.rc_context(style()):
        return entropy_plot(lines)


def test_every_candidate_is_in_the_bin_that_holds_it(tmp_path: Path) -> None:
    write_candidate_report(SCORES, tmp_path, title="t", text="a text", width=80)
    rows = read_csv(tmp_path / "candidates.csv")
    widths = {float(row["high"]) - float(row["low"]) for row in rows}
    assert len(widths) == 1 and 24 / 62 <= widths.pop() < 48 / 62
    for name, values in (
        ("mutual information", SCORES.information),
        ("left entropy", np.array([0.0, 1.0, 1.0, 2.5])),
        ("right entropy", SCORES.right_entropy),
    ):
        bins = [row for row in rows if row["quantity"] == name]
        expected = [sum(float(row["low"]) <= value < float(row["high"]) for value in values) for row in bins]
        assert [int(row["candidates"]) for row in bins] == expected and sum(expected) == 4


def test_the_table_of_candidates_has_their_quantiles_and_says_how_many_there_are(tmp_path: Path) -> None:
    told = io.StringIO()
    console = Console(file=told, width=100)
    console.print(write_candidate_report(SCORES, tmp_path, title="t", text="a text", width=100))
    line = next(line for line in told.getvalue().splitlines() if "mutual information" in line)
    quantiles = np.quantile(SCORES.information, [0, 0.05, 0.5, 0.95, 1])
    least, low, median, mean, high, greatest = map(float, line.split()[2:])
    assert [least, low, median, high, greatest] == pytest.approx(quantiles, abs=5e-4)
    assert mean == pytest.approx(-4.812, abs=1e-3)
    assert "4 candidates of a text: 3 of 2 characters, 1 of 3 characters." in " ".join(told.getvalue().split())
    left = next(line for line in told.getvalue().splitlines() if "left entropy" in line)
    assert "-0.000" not in left
    svg = (tmp_path / "plots/candidates.svg").read_text(encoding="utf-8")
    assert re.findall(r">(mutual information|left entropy|right entropy|bits)<", svg) == [
        "mutual information", "left entropy", "bits", "right entropy",
    ]  # fmt: skip
    assert (tmp_path / "plots/candidates.svg").stat().st_size > 5000
    assert "plots/candidates.svg" in (tmp_path / "candidates.md").read_text(encoding="utf-8")


def test_every_character_has_its_entropy_and_whether_a_piece_ends_there(tmp_path: Path) -> None:
    unknown = EntropyLine("a,b", (float("nan"), 1.0, 0.12345, 2.0), ())
    write_entropy_report([LINE, unknown], tmp_path)
    rows = [tuple(row.values()) for row in read_csv(tmp_path / "entropy.csv")]
    assert rows == [
        ("1", "0", "", "3.0000", "no"), ("1", "1", "中", "1.0000", "no"), ("1", "2", "国", "2.5000", "yes"),
        ("1", "3", "a", "1.5000", "no"), ("1", "4", "b", "4.0000", "yes"), ("1", "5", "人", "0.5000", "yes"),
        ("2", "1", "a", "1.0000", "no"), ("2", "2", ",", "0.1235", "no"), ("2", "3", "b", "2.0000", "yes"),
    ]  # fmt: skip
    assert pieces(LINE) == ["中国", "ab", "人"] and pieces(unknown) == ["a,b"]


def test_the_picture_has_the_characters_as_text_and_a_dotted_line_for_each_boundary() -> None:
    plot = styled([LINE, EntropyLine("国中", (1.0, 2.0, 0.5), (1,))])
    svg = plot.svg.decode()
    labels = re.findall(r">([中国ab人])<", svg)
    assert labels == ["中", "国", "a", "b", "人", "国", "中"]
    dotted = re.findall(r"stroke-dasharray: ([\d.]+),", svg)
    assert len(dotted) == 3, "two lines in the first panel, one in the second"
    assert "中国|ab|人; 国|中." in plot.alternative
