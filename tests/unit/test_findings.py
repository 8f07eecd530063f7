"""The page of findings: verdicts, what papers print, and rows of runs that are and are not there."""

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paribus.reporting.table.comparison import compare
from support.experiments import composition_of
from support.tables import record

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def claim(**changes: Any) -> Any:
    given = {"paper": "P", "where": "T", "says": "x", "size": "", "experiment": "e", "number": "n", "sign": 1}
    return module("claims.claim").Claim(**given | changes)


@pytest.mark.parametrize(
    ("sign", "difference", "interval", "expected"),
    [
        (1, 0.5, (0.1, 0.9), "holds"),
        (1, -0.5, (-0.9, -0.1), "does not"),
        (-1, -0.5, (-0.9, -0.1), "holds"),
        (-1, 0.5, (-0.1, 1.1), "not shown here"),
        (1, 0.5, None, "holds"),
        (-1, 0.5, None, "does not"),
        (1, 0.0, None, "not shown here"),
    ],
)
def test_a_verdict_is_the_sign_of_an_interval_that_leaves_out_zero(
    sign: int, difference: float, interval: tuple[float, float] | None, expected: str
) -> None:
    claims = module("claims.claim")
    assert claims.verdict(claim(sign=sign), claims.Found(difference, interval)) == expected


def test_what_was_not_run_is_not_shown() -> None:
    assert module("claims.claim").verdict(claim(), None) == "not shown here"


def comparison(tmp_path: Path, seeds: int) -> Any:
    """BPE and Scaffold-BPE with so many seeds; the second has a lower uniformity, by about a half."""
    runs = []
    for name, base in (("bpe", -2.0), ("scaffold_bpe", -2.5)):
        for seed in range(seeds):
            uniformity = {"used": base + 0.01 * seed, "frequent": -2.0, "medium": -2.0, "rare": -2.0, "unused": None}
            statistics = {"heldout": {}, "tasks": {}, "embeddings": {"uniformity": {"input": uniformity}}}
            scores = {("boolq", 0): [1, 0, 1, float(seed % 2)]}
            config = {"seed": seed}
            runs.append(
                record(
                    tmp_path,
                    f"{name}{seed}",
                    {"tokenizer": name},
                    scores,
                    statistics=statistics,
                    seed=seed,
                    config=config,
                )
            )
    return compare(runs, ("tokenizer",))


@pytest.mark.parametrize(("seeds", "expected"), [(2, "not shown here"), (3, "holds")])
def test_a_number_without_items_is_judged_over_seeds_where_there_are_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int, expected: str
) -> None:
    claims, measured = module("claims.claim"), module("claims.measured")
    store = measured.Store({}, str(tmp_path))
    monkeypatch.setattr(store, "_comparison", lambda name: comparison(tmp_path, seeds))
    even = claim(experiment="findings/encodings", number="uniformity", sign=-1, row={"tokenizer": "scaffold_bpe"})
    found = store.found(even)
    assert claims.verdict(even, found) == expected
    assert found is None or (found.difference == pytest.approx(-0.5) and found.interval[0] < -0.5 < found.interval[1])


def test_what_papers_print_is_read_from_the_experiment_files() -> None:
    found = {(each.where, each.says): each.size for each in module("claims.papers").claims()}
    assert found["Table VIII", "with Scaffold-BPE it is better than BPE"] == "+0.87 to +2.58 points of accuracy"
    assert found["Table 5", "and better translations"] == "+0.45 BLEU"
    assert found["Table II", "tokens of 1-3 characters become rarer"] == "−0.97 %"
    assert found["Table 8", "and less redundancy"] == "−0.0004"


def test_every_claim_names_an_experiment_and_a_row_of_it() -> None:
    for each in module("claims.papers").claims():
        given = ["start.run=ID"] if each.experiment == "findings/continual" else []
        composition = composition_of(f"experiment={each.experiment}", *given)
        assert set(each.row) <= set(composition.factors), each.says
        typed = [dict(text.split("=", 1) for text in job.overrides) for job in composition.jobs]
        assert any(all(job.get(name) == label for name, label in each.row.items()) for job in typed), each.says
        assert each.sign in (-1, 1)


def test_counted_claims_are_counted_and_runs_that_are_not_there_are_told(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"Some more capital letters, capitals and sums of {n}\n" for n in range(400)), "utf-8")
    overrides = ["corpus=files", f"corpus.paths=[{text}]", "corpus.txt_document=line", "tokenizer.vocab_size=320"]
    overrides += ["corpus.near_duplicate=null", "tracking=none"]
    measured = module("claims.measured")
    store = measured.Store({"lbpe/table_2": overrides, "findings/encodings": overrides}, str(tmp_path / "root"))
    changed = {"experiment": "lbpe/table_2", "number": "bytes_per_token_change"}
    counted = claim(**changed, row={"encoder": "longest_first"}, scale=100)
    found = store.found(counted)
    assert found is not None and found.interval is None
    assert store.found(claim(**changed, row={"encoder": "merge_rank"})) is None
    assert store.found(claim(experiment="findings/encodings", number="bits_per_byte")) is None


def test_what_other_code_found_is_remembered_and_what_is_found_now_comes_first(tmp_path: Path) -> None:
    found, file = module("claims.claim").Found, tmp_path / "found.json"
    remembered = module("claims.remembered").remembered
    one, other = claim(says="one"), claim(says="other")
    first = remembered([(one, found(0.5, (0.1, 0.9), 5, 0.3)), (other, None)], file)
    assert first[1] == (other, None)
    second = remembered([(one, None), (other, found(2.0))], file)
    assert second == [(one, found(0.5, (0.1, 0.9), 5, 0.3)), (other, found(2.0))]
    assert remembered([(one, found(0.7)), (other, None)], file) == [(one, found(0.7)), (other, found(2.0))]
    assert remembered([(one, None)], None) == [(one, None)]
    assert remembered([(claim(says="one", row={"encoder": "a"}), None)], file)[0][1] is None


def test_the_page_says_what_is_kept_beside_it_and_so_can_be_made_again_without_the_runs(tmp_path: Path) -> None:
    kept = shutil.copyfile(ROOT / "docs/findings.json", tmp_path / "findings.json")
    claims = list(module("claims.papers").claims())
    found = module("claims.remembered").remembered([(each, None) for each in claims], kept)
    assert all(measured is not None for _, measured in found)
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    for section in module("findings").sections(found):
        assert section in page


def test_the_list_of_tables_says_of_each_what_the_page_of_findings_says() -> None:
    def sections(name: str) -> list[tuple[str, list[str]]]:
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        return [(part.splitlines()[0], part.splitlines()) for part in text.split("\n## ")[1:]]

    def cells(line: str) -> list[str]:
        return [cell.strip() for cell in line.strip("|").split("|")]

    verdicts: dict[tuple[str, str], set[str]] = {}
    for paper, lines in sections("findings.md"):
        for where, *_, verdict in (cells(line) for line in lines if "`findings/" in line and line.startswith("|")):
            verdicts.setdefault((paper, where), set()).add(verdict.strip("*").removesuffix(" here"))
    told = {
        (paper, row[0]): row[3]
        for paper, lines in sections("papers.md")
        for row in (cells(line) for line in lines if line.startswith("|"))
        if "findings/" in row[3]
    }
    assert told.keys() == verdicts.keys()
    words = {"does not": "does not hold", "holds": ": holds", "not shown": "not shown"}
    assert [place for place in told if not any(words[verdict] in told[place] for verdict in verdicts[place])] == []
    assert {word for text in told.values() for word in words.values() if word in text} == set(words.values())
