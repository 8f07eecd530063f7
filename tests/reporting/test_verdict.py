"""What the head of a report says: of rows of one factor, and of what each factor does over the others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.reporting.columns import Cell, Values
from paribus.reporting.compare import CommonText, Comparison, compare
from paribus.reporting.judgement import ArmScores, Effect, effects
from paribus.reporting.measures import BITS_PER_BYTE
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.significance import LEVEL
from paribus.reporting.verdict import Decision, summary
from support.bits_tables import FACTORS, runs_of
from support.tables import config_of, notes, record

KEY = BITS_PER_BYTE.key
STEADY = (0.001, -0.003, 0.002, -0.001, 0.004)
NAN = float("nan")
APART = [0.5 + seed for seed in STEADY]


def lines(root: Path, shifts: Mapping[str, Sequence[float]], missing: Sequence[MissingRun] = ()) -> list[str]:
    return summary(compare(runs_of(root, shifts), FACTORS, missing)).lines


def test_the_better_and_the_worse_row_are_named_and_what_is_open(tmp_path: Path) -> None:
    apart, alike = lines(tmp_path / "worse", {"bpe": STEADY, "alike": STEADY[::-1], "apart": APART})
    assert apart.startswith("tokenizer: apart is worse than bpe: +0.499 bits per byte (+0.49")
    assert apart.endswith(" with 95 % confidence for all 2 effects; p < 0.0001).")
    assert alike.startswith("tokenizer: it is open whether alike or bpe is better: ")
    assert "which other seeds or documents could reverse" in alike
    (better,) = lines(tmp_path / "better", {"bpe": STEADY, "apart": [-0.5 + seed for seed in STEADY]})
    assert "apart is better than bpe: −0.5" in better and "effects" not in better


def test_rows_that_cannot_be_judged_are_named_and_not_taken_for_alike(tmp_path: Path) -> None:
    for name, shifts in {"two seeds": (0.5, 0.5), "one seed": (0.5,), "no number": (0.5, 0.5, NAN)}.items():
        comparison = compare(
            runs_of(tmp_path / name, {"bpe": STEADY[:3], "alike": STEADY[2::-1], "apart": shifts}), FACTORS
        )
        (finding,) = summary(comparison).findings
        assert "alike or bpe" in finding.text
        (reason,) = summary(comparison).rows
        assert reason.startswith("Nothing can be said of apart: a judgement takes finite scores of 3 seeds"), name


def test_the_first_row_that_was_asked_for_stays_the_baseline_when_none_of_its_runs_finished(tmp_path: Path) -> None:
    runs = runs_of(tmp_path / "runs", {"alike": STEADY[:3], "apart": APART[2:]})
    lost = [
        MissingRun({"tokenizer": "bpe"}, f"seed {seed}: the loss is not finite", diverged=True, after=0)
        for seed in range(3)
    ]
    comparison = compare(runs, FACTORS, lost)
    assert [row.labels for row in comparison.rows] == [("bpe",), ("alike",), ("apart",)]
    assert all(cell.p_value is None for row in comparison.rows for cell in row.cells.values())
    assert any(line.startswith("— bpe: ") for line in notes(comparison))
    untested = "Not tested, as the row that they would be compared with is not there: alike; apart."
    assert untested in notes(comparison)
    between = compare(runs, FACTORS, [replace(each, after=3) for each in lost])
    assert [row.labels for row in between.rows] == [("alike",), ("bpe",), ("apart",)]
    assert between.rows[2].cells[KEY].p_adjusted is not None


LABELS = [(one, two) for one in ("a", "b") for two in ("x", "y")]
STANDARD = {"first": "a", "second": "x"}


def table(
    generator: np.random.Generator, means: Sequence[float], seeds: int = 5, items: int = 60, luck: float = 0.004
) -> list[Values]:
    """Scores of rows: by seed (1, items), with what a seed does to all, to one row, and what an item does to all."""
    of_seed, of_item = generator.normal(scale=0.02, size=seeds), generator.normal(scale=0.5, size=items)
    scores = []
    for mean in means:
        own, item_luck = generator.normal(scale=luck, size=seeds), generator.normal(scale=0.01, size=items)
        scores.append(
            {
                seed: (mean + of_seed[seed] + own[seed] + of_item + item_luck)[None, :]
                + generator.normal(scale=0.01, size=(1, items))
                for seed in range(seeds)
            }
        )
    return scores


def effects_of(
    values: Sequence[Values],
    labels: Sequence[tuple[str, ...]] = LABELS,
    standard: Mapping[str, str] = STANDARD,
    cells: Sequence[Cell] | None = None,
) -> list[Effect]:
    cells = cells or [Cell(value=1.0 if each else None, items=60, fewest=60, seeds=len(each)) for each in values]
    baselines = [None, *[0] * (len(labels) - 1)]
    by_column = [{KEY: cell} for cell in cells]
    return effects(labels, standard, baselines, [BITS_PER_BYTE], by_column, scores={KEY: ArmScores(values)})


def mean_of(values: Values) -> float:
    return float(np.mean([array.mean() for array in values.values()]))


def test_a_main_effect_is_the_mean_of_the_differences_and_an_interaction_their_difference() -> None:
    values = table(np.random.default_rng(0), (2.0, 2.1, 1.9, 1.7))
    first, second, both = effects_of(values)
    ax, ay, bx, by = map(mean_of, values)
    assert first.contrast.named == (("first",), ("b",), ("a",))
    assert (first.contrast.kind, first.contrast.differences) == ("factor", 2)
    assert first.test.difference == pytest.approx(((bx - ax) + (by - ay)) / 2)
    assert second.test.difference == pytest.approx(((ay - ax) + (by - bx)) / 2)
    assert both.contrast.kind == "interaction"
    assert both.test.difference == pytest.approx((by - bx) - (ay - ax))
    for effect in (first, second, both):
        assert effect.tests == 3
        assert effect.p_adjusted is not None and effect.p_adjusted >= effect.test.p_value


def test_the_effect_of_an_only_factor_is_the_test_of_its_row(tmp_path: Path) -> None:
    comparison = compare(runs_of(tmp_path, {"bpe": (0.0, 0.01, -0.01), "apart": (0.1, 0.12, 0.09)}), FACTORS)
    (effect,) = comparison.effects
    cell = comparison.rows[1].cells[KEY]
    assert (effect.test, effect.p_adjusted) == (cell.crossed, cell.p_adjusted)


def test_a_row_that_failed_or_has_few_seeds_takes_no_effect_from_the_others() -> None:
    labels = [(one, two) for one in ("a", "b") for two in ("x", "y", "z")]
    values = table(np.random.default_rng(5), (2.0, 2.0, 2.0, 1.9, 1.9, 1.9))
    whole = {effect.contrast.values: effect for effect in effects_of(values, labels)}
    assert (whole["b",].contrast.differences, whole["b",].asked) == (3, 3)
    for place in range(6):
        for few in ({}, {seed: values[place][seed] for seed in (0, 1)}):
            less = [*values[:place], few, *values[place + 1 :]]
            (main,) = (effect for effect in effects_of(less, labels) if effect.contrast.values == ("b",))
            assert (main.contrast.differences, main.asked) == (2, 3)
            assert main.p_adjusted is not None
            assert main.test.difference == pytest.approx(-0.1, abs=0.02)


def test_differences_with_three_common_seeds_decide_where_rows_lack_seeds() -> None:
    def without(values: Values, seed: int) -> Values:
        return {each: scores for each, scores in values.items() if each != seed}

    values = table(np.random.default_rng(11), (2.0, 2.0, 1.9, 1.9), seeds=4)
    first, second, *_ = effects_of([values[0], without(values[1], 0), values[2], without(values[3], 3)])
    assert (first.contrast.values, first.contrast.differences, first.asked) == (("b",), 1, 2)
    assert first.p_adjusted is not None and first.p_adjusted < 0.05
    assert (second.contrast.differences, second.asked) == (2, 2)


def test_sizes_are_compared_with_the_next_smaller_one_too() -> None:
    generator = np.random.default_rng(8)
    sizes = effects_of(table(generator, (2.0, 2.1, 2.0, 1.9)), [("8K",), ("512",), ("2K",), ("64K",)], {"size": "8K"})
    pairs = [(*effect.contrast.values, *effect.contrast.references) for effect in sizes]
    assert pairs == [("512", "8K"), ("2K", "8K"), ("64K", "8K"), ("2K", "512")]
    assert len(effects_of(table(generator, (2.0, 2.1, 2.0)), [("a",), ("b",), ("3",)], {"kind": "a"})) == 2


def test_factors_without_effect_are_rarely_called_significant() -> None:
    generator = np.random.default_rng(3)
    trials = 300
    draws = [effects_of(table(generator, (2.0,) * 4, seeds=3)) for _ in range(trials)]
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)
    for place in range(3):
        assert np.mean([each[place].test.p_value < LEVEL for each in draws]) < limit
    wrong = [[(effect.p_adjusted or 1) < LEVEL for effect in each] for each in draws]
    assert wrong == [[not effect.test.low < 0 < effect.test.high for effect in each] for each in draws]
    assert np.mean([any(each) for each in wrong]) < limit


WHOLE = {
    ("bpe", "merge_rank"): 0.0,
    ("bpe", "longest_first"): -0.1,
    ("scaffold_bpe", "merge_rank"): 0.001,
    ("scaffold_bpe", "longest_first"): -0.1,
}
"""More bits per byte of the held-out documents, by tokenizer and encoder."""


def factorial(root: Path, seeds: int = 4) -> list[FinishedRun]:
    runs = []
    sizes = np.random.default_rng(3).integers(500, 4000, 60)
    for (tokenizer, encoder), shift in WHOLE.items():
        for seed in range(seeds):
            noise = np.random.default_rng([len(tokenizer), len(encoder), seed]).normal(size=60)
            bits = [float(size * (2.5 + shift + 0.02 * each)) for size, each in zip(sizes, noise, strict=True)]
            labels = {"tokenizer": tokenizer, "encoder": encoder}
            heldout = list(zip(bits, map(int, sizes), strict=True))
            config = config_of(labels, seed) | {"budget": {"kind": "equal_tokens", "tokens": 2_000_000}}
            run = record(root, f"{tokenizer}-{encoder}-{seed}", labels, {}, seed=seed, heldout=heldout, config=config)
            training = {**run.training, "steps": 100, "device_hours": 0.5, "parameters": 1_400_000}
            runs.append(replace(run, training=training, commit="0123456789abcdef", ended=1_795_000_000.0 + seed))
    return runs


def head(runs: Sequence[FinishedRun]) -> Comparison:
    return compare(runs, ("tokenizer", "encoder"))


def findings(comparison: Comparison) -> dict[str, Decision]:
    """Findings by the labels that they are of."""
    return {"".join(each.effect.contrast.values): each for each in summary(comparison).findings}


@pytest.fixture(name="comparison", scope="module")
def _comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return head(factorial(tmp_path_factory.mktemp("runs")))


def test_the_head_says_what_was_compared_and_what_each_factor_does(comparison: Comparison) -> None:
    shown, by_label = summary(comparison), findings(comparison)
    assert shown.setting == (
        "16 runs: 4 rows, 4 seeds",
        "corpus pydocs",
        "1.4M parameters",
        "budget 2.0M tokens",
        "2026-11-18",
        "code 012345678",
    )
    longest, scaffold = by_label["longest_first"], by_label["scaffold_bpe"]
    assert shown.findings[0] == longest
    assert longest.state == "better"
    assert longest.text.startswith("encoder: longest_first is better than merge_rank: −0.1")
    assert "with 95 % confidence for all 3 effects; p < 0.0001, mean of 2)." in longest.text
    assert scaffold.state == "undecided"
    assert scaffold.text.startswith("tokenizer: it is open whether scaffold_bpe or bpe is better: ")
    assert "which other seeds or documents could reverse." in scaffold.text
    assert by_label["scaffold_bpelongest_first"].text.startswith(
        "tokenizer × encoder (effect of scaffold_bpe with longest_first minus that with merge_rank)"
    )
    assert shown.rows == ()
    beyond_chance = replace(longest.effect, p_adjusted=LEVEL)  # alone, and not among all effects
    (finding,) = summary(replace(comparison, effects=(beyond_chance,))).findings
    assert finding.state == "undecided"


def test_rows_with_little_common_text_show_no_effect_of_the_factor(comparison: Comparison) -> None:
    read: dict[str, Any] = {
        "share_of_more": 0.02,
        "by_step": None,
        "text_bytes": 10_000,
        "straddling": 0.0,
        "remedy": "the orders differ: corpus.sample={text} chooses documents before they are ordered",
    }
    pairs = findings(comparison)["longest_first"].effect.contrast.pairs
    common = [CommonText(*pair, seed, 0.022 + 0.018 * seed, **read) for pair in pairs for seed in (0, 1)]
    little = findings(replace(comparison, common_text=common))
    assert little["longest_first"].state == "reserved"
    assert little["longest_first"].text.endswith(
        ", but they share only 2.2 to 4.0 % of their training text (the orders differ: corpus.sample=10KB chooses "
        "documents before they are ordered), which may be why."
    )
    assert "share only" not in little["scaffold_bpe"].text
    enough = [replace(each, share=0.93) for each in common]
    assert findings(replace(comparison, common_text=enough)) == findings(comparison)


def test_other_quantities_that_differ_by_a_quarter_are_named_with_their_remedy(tmp_path: Path) -> None:
    runs = [
        replace(run, training={**run.training, "text_bytes": 1_000, "parameters": 1_000 * scale})
        for run, scale in ((run, 4 if run.factors["tokenizer"] == "bpe" else 1) for run in factorial(tmp_path))
    ]
    texts = {name: finding.text for name, finding in findings(head(runs)).items()}
    also = "; also different: parameters ×0.25 (model.match=total would make them equal)"
    assert also in texts["scaffold_bpe"]
    assert "also different" not in texts["longest_first"] + texts["scaffold_bpelongest_first"]
