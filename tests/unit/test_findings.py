"""The page of findings: verdicts, what papers print, and rows of runs that are and are not there."""

import importlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from paribus.errors import DataError
from paribus.reporting.table.comparison import compare
from support.experiments import composition_of
from support.recorded_sweeps import OVERRIDES, finished_sweep
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
    monkeypatch.setattr(store, "_comparison", lambda name, against: comparison(tmp_path, seeds))
    even = claim(experiment="findings/encodings", number="uniformity", sign=-1, row={"tokenizer": "scaffold_bpe"})
    found = store.found(even)
    assert claims.verdict(even, found) == expected
    assert found is None or (found.difference == pytest.approx(-0.5) and found.interval[0] < -0.5 < found.interval[1])
    if found is not None:  # what its ends alone say of the smallest detectable difference holds that which was kept
        low, high = module("claims.detectable").bounds(replace(found, detectable=None))
        assert low < high and low * 0.999 <= found.detectable <= high * 1.001


def test_the_smallest_detectable_difference_is_found_four_times_in_five() -> None:
    """Student's test of five draws; the error that a table shows is taken for the one in the middle of all."""
    freedom, drawn = 4, np.random.default_rng(0)
    means = drawn.normal(0.0, 1 / np.sqrt(freedom + 1), 200_000)
    errors = np.sqrt(drawn.chisquare(freedom, 200_000) / freedom / (freedom + 1))
    middle = float(np.median(errors))
    least = module("claims.detectable").detectable(middle, freedom)
    share = np.mean(np.abs(means + least) > t.ppf(0.975, freedom) * errors)
    assert share == pytest.approx(0.8, abs=0.01)
    assert module("claims.detectable").detectable(0.0, freedom) is None


def test_a_claim_over_another_arm_is_measured_against_that_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "texts.txt").write_text("some text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    finished_sweep(tmp_path / "made", "experiment=findings/encodings", "seed=0,1,2")
    store = module("claims.measured").Store({"findings/encodings": OVERRIDES}, "paribus_runs")
    given = {"experiment": "findings/encodings", "number": "bits_per_byte"}
    scaffold, both = ({"tokenizer": "scaffold_bpe", "encoder": name} for name in ("merge_rank", "longest_first"))
    one, other = (store.found(claim(**given, row=row)) for row in (scaffold, both))
    between = store.found(claim(**given, row=both, against=scaffold))
    assert between.difference == pytest.approx(other.difference - one.difference)
    assert between.interval[0] < between.difference < between.interval[1]
    assert store.found(claim(**given, row=scaffold, against=scaffold)) is None


@pytest.mark.parametrize(("others", "seeds"), [((), 5), ((1,), 4), ((1, 2), 3), ((1, 2, 3), None)])
def test_a_difference_has_the_seeds_that_both_rows_have(
    others: tuple[int, ...], seeds: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row has three at least."""
    (tmp_path / "texts.txt").write_text("some text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for run in finished_sweep(tmp_path / "made", "experiment=findings/encodings", "seed=0,1,2,3,4"):
        arm = (run.job.config.tokenizer.kind, run.job.config.encoder.kind)
        if arm == ("bpe", "merge_rank") and run.job.config.seed in others[:2]:
            shutil.rmtree(tmp_path / "paribus_runs/runs" / run.run_id)
        if arm == ("bpe", "longest_first") and run.job.config.seed in others[2:]:
            shutil.rmtree(tmp_path / "paribus_runs/runs" / run.run_id)
    store = module("claims.measured").Store({"findings/encodings": OVERRIDES}, "paribus_runs")
    row = {"tokenizer": "bpe", "encoder": "longest_first"}
    found = store.found(claim(experiment="findings/encodings", number="bits_per_byte", row=row))
    assert (found and found.seeds) == seeds


def test_what_is_measured_in_place_of_a_claim_does_not_judge_it() -> None:
    claims = module("claims.claim")
    assert claims.verdict(claim(stands_in=True), claims.Found(0.5, (0.1, 0.9))) == "not shown here"


def test_what_a_language_model_does_to_segmentation_is_what_the_page_of_segmentation_says() -> None:
    segmentation = module("claims.segmentation")
    (predictive,) = (each for each in segmentation.segmentation_claims() if "predictive" in each.says)
    ((_, found),) = segmentation.segmented([predictive], None)
    page = (ROOT / "docs/segmentation.md").read_text(encoding="utf-8")
    middle, half = found.difference, (found.interval[1] - found.interval[0]) / 2
    assert f"| predictive entropy − standard BPE | +{middle:.2f} ± {half:.2f} | +8.40 |" in page
    row = next(line for line in findings_page().splitlines() if predictive.says in line)
    measured = f"| +{middle:.2f} | +{middle - half:.2f} to +{middle + half:.2f} | {found.detectable:.2f} |"
    assert f"{measured} not shown here |" in row  # the paper's is GPT-2
    assert predictive.size == "+8.40 points of F1"
    with pytest.raises(DataError, match="no row of 'predictive entropy'"):
        segmentation.printed(page.replace("| predictive entropy |", "| another |"), "predictive entropy")


def test_differences_of_the_segmentation_are_those_that_the_page_of_segmentation_has() -> None:
    page = (ROOT / "docs/segmentation.md").read_text(encoding="utf-8")
    ((_, best), (_, entropy), _, (_, between), _) = all_found(ROOT / "docs/findings.json")[-5:]
    for name, one in (("best lambda", best), ("entropy only", entropy)):
        half = (one.interval[1] - one.interval[0]) / 2
        assert re.search(rf"\| {name} [^|]*− standard BPE \| \+{one.difference:.2f} ± {half:.2f} \|", page)
    assert f"| best lambda − entropy only | +{between.difference:.2f} ±" in page


def test_what_papers_print_is_read_from_the_experiment_files() -> None:
    found = {(each.where, each.says): each.size for each in module("claims.papers").claims()}
    assert found["Table VIII", "with Scaffold-BPE it is better than BPE"] == "+0.87 to +2.58 points of accuracy"
    further = 'with Scaffold-BPE it "achieves further improvements" over Scaffold-BPE'
    assert found["Table VIII", further] == "−0.12 to +1.60 points of accuracy"
    assert found["section 1", "a vocabulary of BPE has scaffold tokens"] == "6.07 % of 32K"
    assert found["Table 5", "and better translations"] == "+0.45 BLEU"
    assert found["Table II", "tokens of 1-3 characters become rarer"] == "−0.97 %"
    assert found["Table 8", "and less redundancy"] == "−0.0004"
    assert found["Table VI", "and of 128K"] == "+0.0007 bytes a token"
    assert found["Figure 5", "and of 128K"] == "+58.99 %"
    left = {(each.where, each.experiment, each.says): each.size for each in module("claims.papers").untrained()}
    assert left["Table I", "lbpe/table_1", "and at 6.7B"] == "+0.63 to +1.60 points of accuracy"
    assert left["Table 1", "scaffold_bpe/table_1", "also at 1.2B parameters"] == "+0.48 to +1.41 points of accuracy"
    assert left["Table 6", "scaffold_bpe/table_6", "and in English and French"] == "+0.030 bytes a token"


def test_every_row_of_a_papers_own_method_is_in_a_claim() -> None:
    papers = module("claims.papers")
    printed = [entry["printed"] for _, entry in papers.entries() if not isinstance(entry["printed"], str)]
    claimed = {(experiment, label) for experiment, *labels in printed for label in labels}
    methods = {"lbpe": "LBPE", "scaffold_bpe": "Scaffold-BPE", "in_context": "In-Context Pretraining"}
    own = []
    for folder, method in methods.items():
        for file in sorted((ROOT / "experiments" / folder).glob("[!_]*.yaml")):
            name = f"{folder}/{file.stem}"
            paper = papers.read_paper(name)
            own += [(name, row.label) for row in paper.rows if row.label.startswith(method)] if paper else []
    again = {("lbpe/table_8", "LBPE")}  # with BPE at 468M, which Table I has
    assert len(own) == 36 and sorted(set(own) - claimed - again) == []


@pytest.mark.parametrize("experiment", ["lbpe/table_1", "scaffold_bpe/table_1"])
def test_what_larger_models_take_is_what_the_page_of_costs_has(experiment: str) -> None:
    page = (ROOT / "docs/costs.md").read_text(encoding="utf-8")
    untrained = [each for each in module("claims.papers").untrained() if each.experiment == experiment]
    assert len(untrained) == 2
    for each in untrained:
        told = re.fullmatch(r"(\d) trainings of (\d+)B tokens at (\S+) parameters", each.takes)
        assert told is not None
        trainings, tokens, parameters = told.groups()
        (name,) = re.findall(
            rf"^- (.*?): `paribus plan experiment={experiment} scale=paper_{parameters.lower()} ", page, re.M
        )
        assert f"| {name} | {trainings} | {tokens}.0B | {parameters} |" in page


def test_every_claim_names_an_experiment_and_a_row_of_it() -> None:
    for each in module("claims.papers").claims():
        given = ["start.run=ID"] if each.experiment == "findings/continual" else []
        composition = composition_of(f"experiment={each.experiment}", *given)
        typed = [dict(text.split("=", 1) for text in job.overrides) for job in composition.jobs]
        for row in (each.row, each.against):
            assert set(row) <= set(composition.factors), each.says
            assert any(all(job.get(name) == label for name, label in row.items()) for job in typed), each.says
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
    texts = store.found(claim(experiment="lbpe/table_2", number="texts", row={"encoder": "longest_first"}))
    assert 0 < texts.difference < 400  # what is held out is not counted, as paper-statistics.md counts it
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


def findings_page() -> str:
    return (ROOT / "docs/findings.md").read_text(encoding="utf-8")


def all_found(kept: Path) -> list[Any]:
    """Every claim with what is kept of it."""
    measured = [*module("claims.papers").claims(), *module("claims.segmentation").segmentation_claims()]
    found: list[Any] = module("claims.remembered").remembered([(each, None) for each in measured], kept)
    return found


def test_the_page_says_what_is_kept_beside_it_and_so_can_be_made_again_without_the_runs(tmp_path: Path) -> None:
    found = all_found(shutil.copyfile(ROOT / "docs/findings.json", tmp_path / "findings.json"))
    assert [each.says for each, measured in found if measured is None] == []
    page = findings_page()
    for section in module("findings").sections(found):
        assert section in page


def test_what_is_counted_is_kept_with_all_its_digits() -> None:
    found = [one for _, one in all_found(ROOT / "docs/findings.json") if one and one.interval is None]
    assert found and [one.difference for one in found if one.difference == round(one.difference, 6)] == []


Rows = list[list[str]]


def rows(name: str) -> dict[str, Rows]:
    """The rows of the tables of a page, by the paper that they are of."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    parts = [part.splitlines() for part in text.split("\n## ")[1:]]
    return {
        lines[0]: [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        for lines in parts
        if "(arXiv" in lines[0]
    }


def verdicts() -> dict[tuple[str, str], set[str]]:
    """Paper and place -> what the page of findings says of the paper's claims there, without questions of ours."""
    found: dict[tuple[str, str], set[str]] = {}
    for paper, table in rows("findings.md").items():
        for where, *_, verdict in table:
            if verdict not in ("verdict", "---"):
                found.setdefault((paper, where), set()).add(verdict.strip("*").replace(" here", ""))
    return {place: words for place, words in found.items() if "our question" not in place[1]}


def test_the_page_has_every_table_and_figure_of_which_the_list_of_tables_says_something() -> None:
    listed = {
        (paper, where): told
        for paper, table in rows("papers.md").items()
        for where, _, _, told, _ in table
        if where not in ("there", "---") and told != "–"
    }
    assert len(listed) == 28 and listed.keys() <= verdicts().keys()
    untrained = {place for place, words in verdicts().items() if words == {"not shown: not run"}}
    assert untrained == {place for place, told in listed.items() if told == "not run"}
    assert not any("not run" in told for place, told in listed.items() if place not in untrained)


def test_the_list_of_tables_says_of_each_what_the_page_of_findings_says() -> None:
    trained = {
        (paper, row[0]) for paper, table in rows("findings.md").items() for row in table if "`findings/" in row[3]
    }
    found = {place: words for place, words in verdicts().items() if place in trained}
    told = {
        (paper, row[0]): row[3] for paper, table in rows("papers.md").items() for row in table if "findings/" in row[3]
    }
    assert told.keys() == found.keys()
    words = {"does not": "does not hold", "holds": ": holds", "not shown": "not shown"}
    for place, said in found.items():
        assert [word for word in said if words[word.partition(":")[0]] not in told[place]] == [], place
    assert {word for text in told.values() for word in words.values() if word in text} == set(words.values())
