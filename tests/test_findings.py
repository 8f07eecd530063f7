"""The page of findings: verdicts, what papers print, and rows of runs that are and are not there."""

import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from paribus.errors import DataError
from paribus.tokenization.encoded_corpus import EncodedCorpus
from support.experiments import composition_of
from support.recorded_sweeps import OVERRIDES, finished_sweep

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = "outside this design"


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
    ("sign", "difference", "p_adjusted", "expected"),
    [
        (1, 0.5, 0.049, "holds"),
        (1, -0.5, 0.049, "does not hold"),
        (-1, -0.5, 0.0, "holds"),
        (-1, 0.5, 0.05, "not shown here"),
        (1, 0.5, None, "not run"),
    ],
)
def test_a_verdict_is_the_sign_of_a_difference_whose_adjusted_p_value_is_below_5_per_cent(
    sign: int, difference: float, p_adjusted: float | None, expected: str
) -> None:
    claims = module("claims.claim")
    assert claims.JudgedClaim(claim(sign=sign), claims.Measurement(difference), p_adjusted).verdict == expected


def test_claims_are_adjusted_together_but_for_those_outside_the_design() -> None:
    claims = module("claims.claim")
    measured = [claims.Measurement(1.0, (0.1, 1.9), p) for p in (0.02, 0.04, 1e-9, 0.03, 0.01)] + [None]
    given = [claim(), claim(), claim(outside=True, takes="more"), claim(), claim(), claim()]
    judged = claims.judge_claims(list(zip(given, measured, strict=True)))
    assert [one.p_adjusted for one in judged] == [
        *map(pytest.approx, (0.06, 0.06)),
        None,
        *map(pytest.approx, (0.06, 0.04)),
        None,
    ]
    shown = "not shown here"
    assert [one.verdict for one in judged] == [shown, shown, OUTSIDE, shown, "holds", "not run"]


def test_holm_adjusts_as_in_his_paper() -> None:
    holm = module("claims.claim").holm
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_smallest_detectable_difference_is_found_four_times_in_five() -> None:
    """Student's test of five draws; the error that a table shows is taken for the one in the middle of all."""
    freedom, drawn = 4, np.random.default_rng(0)
    means = drawn.normal(0.0, 1 / np.sqrt(freedom + 1), 200_000)
    errors = np.sqrt(drawn.chisquare(freedom, 200_000) / freedom / (freedom + 1))
    found = module("claims.claim").by_student(1.0, float(np.median(errors)), freedom)
    share = np.mean(np.abs(means + found.detectable) > t.ppf(0.975, freedom) * errors)
    assert share == pytest.approx(0.8, abs=0.01)


def test_students_interval_leaves_out_zero_where_its_p_value_is_below_5_per_cent() -> None:
    student = module("claims.claim").by_student
    for statistic in (2.77, 2.78):  # 2.776 standard errors, with four degrees of freedom
        found = student(-statistic, 1.0, 4)
        assert (found.interval[1] < 0) == (found.p_value < 0.05) == (statistic > 2.776)


def test_a_claim_over_another_arm_is_measured_against_that_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "texts.txt").write_text("some text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    finished_sweep(tmp_path / "made", "experiment=findings/encodings", "seed=0,1,2")
    store = module("claims.measured").Store({"findings/encodings": OVERRIDES}, "paribus_runs")
    given = {"experiment": "findings/encodings", "number": "bits_per_byte"}
    scaffold, both = ({"tokenizer": "scaffold_bpe", "encoder": name} for name in ("merge_rank", "longest_first"))
    one, other = (store.measure(claim(**given, row=row)) for row in (scaffold, both))
    between = store.measure(claim(**given, row=both, against=scaffold))
    assert between.difference == pytest.approx(other.difference - one.difference)
    assert between.interval[0] < between.difference < between.interval[1]
    assert store.measure(claim(**given, row=scaffold, against=scaffold)) is None


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
    found = store.measure(claim(experiment="findings/encodings", number="bits_per_byte", row=row))
    assert (found and found.seeds) == seeds


def test_what_a_language_model_does_to_segmentation_is_what_the_page_of_segmentation_says() -> None:
    segmentation = module("claims.segmentation")
    (predictive,) = (each for each in segmentation.segmentation_claims() if "predictive" in each.says)
    ((_, found),) = segmentation.measure_segmentation([predictive], None)
    page = (ROOT / "docs/segmentation.md").read_text(encoding="utf-8")
    middle, half = found.difference, (found.interval[1] - found.interval[0]) / 2
    assert f"| predictive entropy − standard BPE | +{middle:.2f} ± {half:.2f} | +8.40 |" in page
    row = next(line for line in findings_page().splitlines() if predictive.says in line)
    measured = f"| +{middle:.2f} | +{middle - half:.2f} to +{middle + half:.2f} | {found.detectable:.2f} |"
    assert f"{measured} – | outside this design |" in row  # the paper's is GPT-2
    assert predictive.size == "+8.40 points of F1"
    with pytest.raises(DataError, match="no row of 'predictive entropy'"):
        segmentation.measurement_on_page(page.replace("| predictive entropy |", "| another |"), "predictive entropy")


def test_differences_of_the_segmentation_are_those_that_the_page_of_segmentation_has(kept: list[Any]) -> None:
    page = (ROOT / "docs/segmentation.md").read_text(encoding="utf-8")
    ((_, best), (_, entropy), _, (_, between), _) = kept[-5:]
    for name, one in (("best lambda", best), ("entropy only", entropy)):
        half = (one.interval[1] - one.interval[0]) / 2
        assert re.search(rf"\| {name} [^|]*− standard BPE \| \+{one.difference:.2f} ± {half:.2f} \|", page)
    assert f"| best lambda − entropy only | +{between.difference:.2f} ±" in page


def test_what_papers_print_is_read_from_the_experiment_files() -> None:
    found = {(each.where, each.says): each.size for each in module("claims.papers").claims()}
    assert found["Table VIII", "LBPE with Scaffold-BPE is better than BPE"] == "+0.87 to +2.58 points of accuracy"
    further = 'LBPE with Scaffold-BPE "achieves further improvements" over Scaffold-BPE'
    assert found["Table VIII", further] == "−0.12 to +1.60 points of accuracy"
    assert found["Table 5", "a model with Scaffold-BPE translates better into German"] == "+0.45 BLEU"
    assert found["Table II", "tokens of 1-3 characters become rarer with LBPE"] == "−0.97 %"
    assert found["Table 8", "tokens of Scaffold-BPE have less redundancy"] == "−0.0004"
    assert found["Table VI", "LBPE needs fewer tokens for a text, at 128K"] == "+0.0007 bytes a token"
    assert found["Figure 5", "tokens that replace scaffold tokens are more frequent, at 128K"] == "+58.99 %"
    by_file = {(each.experiment, each.says): each.size for each in module("claims.papers").claims()}
    assert by_file["lbpe/table_1", "LBPE is better at 6.7B parameters"] == "+0.63 to +1.60 points of accuracy"
    larger, pairs = "is better at 1.2B parameters", "needs fewer tokens for pairs in English and French"
    assert by_file["scaffold_bpe/table_1", f"Scaffold-BPE {larger}"] == "+0.48 to +1.41 points of accuracy"
    assert by_file["scaffold_bpe/table_6", f"Scaffold-BPE {pairs}"] == "+0.030 bytes a token"


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
    untrained = [each for each in module("claims.papers").claims() if each.experiment == experiment]
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
        if not each.number:
            continue
        given = ["start.run=ID"] if each.experiment == "findings/continual" else []
        composition = composition_of(f"experiment={each.experiment}", *given)
        typed = [dict(text.split("=", 1) for text in job.overrides) for job in composition.jobs]
        for row in (each.row, each.against):
            assert set(row) <= set(composition.factors), each.says
            assert any(all(job.get(name) == label for name, label in row.items()) for job in typed), each.says
        assert each.sign in (-1, 1)


def test_counted_claims_have_intervals_over_documents_and_runs_that_are_not_there_are_told(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    drawn = np.random.default_rng(0)
    words = ["".join(drawn.choice(list("aeiotnrs"), drawn.integers(3, 9))) for _ in range(300)]
    lines = (" ".join(drawn.choice(words, drawn.integers(3, 30))) + "\n" for _ in range(400))
    text.write_text("".join(lines), "utf-8")
    overrides = ["corpus=files", f"corpus.paths=[{text}]", "corpus.txt_document=line", "tokenizer.vocab_size=320"]
    overrides += ["corpus.near_duplicate=null", "tracking=none"]
    measured = module("claims.measured")
    store = measured.Store({"lbpe/table_2": overrides, "findings/encodings": overrides}, str(tmp_path / "root"))
    texts = store.measure(claim(experiment="lbpe/table_2", number="texts", row={"encoder": "longest_first"}))
    assert (texts.interval, texts.p_value) == (None, None)  # no other documents change it
    assert 0 < texts.difference < 400  # what is held out is not counted, as paper-statistics.md counts it
    changed = claim(experiment="lbpe/table_2", number="bytes_per_token_change", row={"encoder": "merge_rank"})
    assert store.measure(changed) is None
    assert store.measure(claim(experiment="findings/encodings", number="bits_per_byte")) is None

    number = {"experiment": "lbpe/table_2", "number": "bytes_per_token_difference", "row": {"encoder": "longest_first"}}
    found, hundredfold = (store.measure(claim(**number, scale=scale)) for scale in (1, 100))
    assert hundredfold.difference == pytest.approx(100 * found.difference)
    assert hundredfold.interval == pytest.approx([100 * bound for bound in found.interval])
    ratios, parts = [], []
    for path in (tmp_path / "root/artifacts/tokens").glob("*/ids.npy"):
        corpus = EncodedCorpus(path.parent)
        tokens = np.diff(corpus.offsets)
        ratios.append(corpus.source_bytes.sum() / tokens.sum())
        parts.append((corpus.source_bytes - ratios[-1] * tokens) / tokens.mean())
    assert sorted([found.difference, -found.difference])[1] == pytest.approx(abs(ratios[0] - ratios[1]))
    error = np.std(parts[0] - parts[1], ddof=1) / np.sqrt(len(parts[0]))  # by the delta method
    assert np.ptp(found.interval) == pytest.approx(2 * t.ppf(0.975, found.freedom) * error, rel=0.15)


def test_a_kept_measurement_stands_in_for_missing_runs_and_a_new_one_replaces_it(tmp_path: Path) -> None:
    measurement, file = module("claims.claim").Measurement, tmp_path / "found.json"
    with_kept = module("claims.kept").with_kept
    one, other = claim(says="one"), claim(says="other", row={"encoder": "a"})
    first = with_kept([(one, measurement(0.5, (0.1, 0.9), 0.02, 4.0, 0.3, 5)), (other, None)], file)
    assert first[1] == (other, None)
    second = with_kept([(one, None), (other, measurement(2.0))], file)
    assert second == [first[0], (other, measurement(2.0))]
    assert with_kept([(one, measurement(0.7)), (other, None)], file) == [(one, measurement(0.7)), second[1]]
    assert with_kept([(claim(says="in other words"), None)], file) == [(claim(says="in other words"), measurement(0.7))]
    assert with_kept([(other, None)], file) == [(other, None)]  # what no claim is of leaves the file


def findings_page() -> str:
    return (ROOT / "docs/findings.md").read_text(encoding="utf-8")


@pytest.fixture
def kept(tmp_path: Path) -> list[Any]:
    """Every claim with what is kept of it."""
    file = shutil.copyfile(ROOT / "docs/findings.json", tmp_path / "findings.json")
    claims = [*module("claims.papers").claims(), *module("claims.segmentation").segmentation_claims()]
    measured: list[Any] = module("claims.kept").with_kept([(each, None) for each in claims], file)
    return measured


def test_the_page_says_what_is_kept_beside_it_and_so_can_be_made_again_without_the_runs(kept: list[Any]) -> None:
    missing = {each.experiment for each, measured in kept if each.number and measured is None}
    assert missing == set()
    judged, page = module("claims.claim").judge_claims(kept), findings_page()
    for part in (module("findings").page_top(judged), *module("findings").sections(judged)):
        assert part in page


def test_what_is_kept_has_all_its_digits_and_the_code_that_made_it(kept: list[Any]) -> None:
    tested = [one for each, one in kept if one and not each.outside]
    assert [one.difference for one in tested if one.difference == round(one.difference, 6)] == []
    assert all(one.p_value is not None and one.freedom > 0 for one in tested)
    assert all(re.fullmatch("[0-9a-f]{40}", one.read_by) for one in tested)
    assert all(bool(one.trained_by) == (one.seeds > 0) for one in tested)


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
                found.setdefault((paper, where), set()).add(verdict.strip("*").removesuffix(" here"))
    return {place: words for place, words in found.items() if "our question" not in place[1]}


def test_the_page_has_every_table_and_figure_of_which_the_list_of_tables_says_something() -> None:
    listed = {
        (paper, where): told
        for paper, table in rows("papers.md").items()
        for where, _, _, told, _ in table
        if where not in ("in the paper", "---") and told != "–"
    }
    assert len(listed) == 28 and listed.keys() <= verdicts().keys()
    untrained = {place for place, words in verdicts().items() if words == {"not run"}}
    assert untrained == {place for place, told in listed.items() if re.fullmatch("(`findings/\\w+`: )?not run", told)}


def test_the_list_of_tables_says_of_each_what_the_page_of_findings_says() -> None:
    trained = {
        (paper, row[0]) for paper, table in rows("findings.md").items() for row in table if "`findings/" in row[3]
    }
    found = {place: words for place, words in verdicts().items() if place in trained}
    told = {
        (paper, row[0]): row[3] for paper, table in rows("papers.md").items() for row in table if "findings/" in row[3]
    }
    assert told.keys() == found.keys()
    for place, said in found.items():
        assert [verdict for verdict in said if verdict not in told[place]] == [], place
        absent = {"holds", "does not hold", "not shown", OUTSIDE, "not run"} - said
        assert [verdict for verdict in absent if verdict in told[place]] == [], place
