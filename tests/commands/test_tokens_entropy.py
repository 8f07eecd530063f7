"""`paribus tokens entropy`: Figures 2, 3 and 5 of arXiv 2506.15889."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from paribus.cli import main
from paribus.tokenization.predictive import PredictiveEntropySpans
from support.character_models import SENTENCE, save_bert_style_model, save_paribus_checkpoint
from support.command_line import OVERRIDES


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def directory_of(printed: str) -> Path:
    found = re.search(r"tables, numbers and plots: (\S+)", printed)
    assert found
    return Path(found[1])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def made_of(directory: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((directory / "artefacts.json").read_text(encoding="utf-8"))["artefacts"]
    return found


def test_a_text_without_candidates_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "texts").mkdir()
    (here / "texts/a.jsonl").write_text('{"text": "ab"}\n{"text": "cd"}\n{"text": "ef"}\n', encoding="utf-8")
    assert main(["tokens", "entropy", *OVERRIDES, "pretokenizer=spans"]) == 1
    assert "pretokenizer.min_count=2" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("save", [save_bert_style_model, save_paribus_checkpoint])
def test_the_entropy_along_lines_is_that_of_the_pretokenizer_and_no_corpus_is_read(
    here: Path, capsys: pytest.CaptureFixture[str], save: object
) -> None:
    save(here / "model")  # type: ignore[operator]
    lines = [SENTENCE, SENTENCE[5:12]]
    text = f"{lines[0]}\n\n{lines[1]}\n"
    assert (
        main(["tokens", "entropy", "--text", text, "pretokenizer=predictive_entropy", "pretokenizer.model=model"]) == 0
    )
    printed = capsys.readouterr().out
    cutter = PredictiveEntropySpans(here / "model")
    for line in lines:
        assert "|".join(cutter.pieces(line)) in printed.splitlines()
    found = rows(directory_of(printed) / "entropy.csv")
    for number, (line, entropies) in enumerate(zip(lines, cutter.entropies(lines), strict=True), start=1):
        mine = [row for row in found if row["line"] == str(number)]
        assert "".join(row["character"] for row in mine) == line
        assert [float(row["entropy"]) for row in mine] == pytest.approx(entropies.tolist(), abs=1e-4)
        ends = [int(row["place"]) for row in mine if row["boundary"] == "yes"]
        assert ends == np.cumsum([len(piece) for piece in cutter.pieces(line)]).tolist()
    svg = (directory_of(printed) / "plots/entropy.svg").read_text(encoding="utf-8")
    assert "".join(re.findall(rf">([{re.escape(SENTENCE)}])<", svg)) == "".join(lines)
    assert not (here / "paribus_runs/artifacts").exists()
    assert made_of(directory_of(printed)) == []
