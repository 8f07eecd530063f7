"""The papers' statistics: every number of the tables against a direct computation on a small text."""

import importlib
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SYLLABLES = ("A", "ri", "zo", "na", "con", "nect", "ing", "ma", "grö", "ßer", "中文", "分词", "20", "'s", "bl", "aze")
DRAWN = random.Random(0)
WORDS = ["".join(DRAWN.choices(SYLLABLES, k=DRAWN.randint(1, 6))) for _ in range(200)]
TEXTS = [" ".join(WORDS[int(200 * DRAWN.random() ** 2)] for _ in range(60)) for _ in range(40)]
SIZE = 400

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def measured(load: Load) -> Any:
    return load("papers.measured").Measured.of(TEXTS, SIZE)


def tokens(encoded: Any) -> list[bytes]:
    return [token for text in TEXTS for token in encoded.tokenizer.tokenize(text)]


def characters(token: bytes) -> int:
    return max(1, len(token.decode("utf-8", errors="ignore")))


def place(length: int) -> int:
    return min((length - 1) // 3, 5)


def entropy(encoded: Any) -> float:
    counts = Counter(tokens(encoded))
    return -sum(count / counts.total() * math.log2(count / counts.total()) for count in counts.values())


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_tokens_are_put_in_the_papers_lengths(measured: Any) -> None:
    for encoded in (measured.bpe, measured.lbpe, measured.scaffold, measured.both):
        counts = Counter(place(characters(token)) for token in tokens(encoded))
        assert encoded.occurrences() == [counts[number] for number in range(6)]
    spelled = [entry for entry in measured.bpe.tokenizer.vocabulary if entry.id is not None]
    sizes = Counter(place(max(1, sum(byte & 0xC0 != 0x80 for byte in entry.bytes))) for entry in spelled)
    assert measured.bpe.vocabulary() == [sizes[number] for number in range(6)]


def test_scaffolds_are_found_where_training_marked_them(measured: Any) -> None:
    entries = list(measured.scaffold.tokenizer.vocabulary)
    marked = [entry.bytes for entry in entries[:SIZE] if entry.scaffold]
    counts = Counter(tokens(measured.bpe))
    assert measured.scaffold.tokenizer.vocab_size == measured.size == SIZE
    old, new = measured.replaced(), measured.replacing()
    assert old.tokens == len(marked) > 0
    assert old.share == pytest.approx(len(marked) / SIZE)
    assert old.mean_frequency == pytest.approx(sum(counts[spelling] for spelling in marked) / len(marked))
    made = [entry.bytes for entry in entries[SIZE:] if not entry.scaffold]
    counts = Counter(tokens(measured.scaffold))
    assert new.tokens == len(made) == len(marked)
    assert new.mean_frequency == pytest.approx(sum(counts[spelling] for spelling in made) / len(made))


def test_compression_and_entropy_are_those_of_the_tokens(load: Load, measured: Any) -> None:
    size = sum(len(text.encode()) for text in TEXTS)
    packed = [size / len(tokens(item)) for item in (measured.bpe, measured.lbpe, measured.scaffold, measured.both)]
    row = cells(load("papers.tables").compression([measured]))[0]
    assert [row[1], row[2], row[4], row[6]] == [f"{value:.4f}" for value in packed]
    entropies = [entropy(item) for item in (measured.bpe, measured.scaffold)]
    row = cells(load("papers.tables").balance([measured]))[0]
    assert row[1:4] == [f"{value:.5f}" for value in entropies] + [f"{entropies[1] - entropies[0]:+.5f}"]
    assert row[5] == f"{1 - entropies[0] / math.log2(SIZE):.5f}"


def test_what_a_paper_prints_stands_beside_ours_and_nothing_else_is_filled_in(load: Load, measured: Any) -> None:
    tables = load("papers.tables")
    lbpe, *_, pile, _, _ = cells(tables.compression([measured]))[1:]
    assert lbpe[:5] == ["32K, Pile (LBPE)", "3.4318", "3.4381", "+0.18 %", ""]
    assert pile[:6] == ["Pile (Scaffold-BPE)", "3.879", "", "", "3.889", "+0.26 %"]
    assert cells(tables.scaffolds([measured]))[1] == ["32K, Pile (paper)", "", "6.07 %", "", "", "", "+76.40 %"]
    paper = cells(tables.balance([measured]))[-1]
    assert paper == ["32K, Pile (paper)", "11.2382", "11.2443", "+0.0061", "", "0.2491", "0.2487", "-0.0004", ""]
    claims = {row[0]: row[2:4] for row in cells(load("papers.claims").claims_table([measured]))}
    assert claims["longest-first: bytes per token"] == ["+", "+0.18 % (32K), +0.10 % (64K), +0.02 % (128K)"]
    assert claims["longest-first: tokens of 1-3 characters in the text"] == ["-", "-0.97 % (32K)"]
    assert claims["longest-first: tokens of 13-15 characters in the text"] == ["+", "+2.28 % (32K)"]


@pytest.mark.parametrize(
    ("sign", "ours", "verdict"),
    [(1, 0.1, "holds"), (-1, 0.1, "**does not hold**"), (1, 0.0, "**does not hold**"), (1, math.nan, "")],
)
def test_a_claim_holds_where_the_sign_is_the_papers(load: Load, sign: int, ours: float, verdict: str) -> None:
    assert load("papers.claims").Claim("", "", sign, "", ours, "").verdict == verdict


def test_short_tokens_are_weighed_against_long_ones_by_token(load: Load) -> None:
    weighed = load("papers.claims").short_over_long
    assert weighed([30, 9, 9, 2, 4], [10, 9, 9, 1, 2]) == pytest.approx((30 / 10) / (6 / 3))
    assert math.isnan(weighed([30, 9, 9, 0, 0], [10, 9, 9, 1, 2]))


def test_the_command_prints_every_table_for_every_size(tmp_path: Path) -> None:
    corpus = tmp_path / "small.txt"
    corpus.write_text("\n".join(TEXTS), encoding="utf-8")
    output = tmp_path / "tables.md"
    command = [sys.executable, str(BENCHMARKS / "paper_statistics.py"), "--corpus", str(corpus)]
    command += ["--output", str(output), "--vocabulary", "300", str(SIZE)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == output.read_text(encoding="utf-8")
    assert printed.startswith("## small: ")
    assert [line.split("(")[0].strip() for line in printed.splitlines() if line.startswith("###")] == [
        "### Claims",
        "### Token lengths in the text, 300 tokens",
        "### Token lengths in the text, 400 tokens",
        "### Bytes per token",
        "### Scaffold tokens and what replaced them",
        "### Entropy H and redundancy R",
    ]
