"""Rows whose trainings are not what a reader takes them for: what the table says, and what it does not judge."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.evaluation import default_table
from paribus.reporting.compare import Comparison, compare
from paribus.reporting.report import write_report
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.table import seeds_note
from paribus.reporting.verdict import summary
from support.bits_tables import FACTORS, rows, run
from support.tables import notes, record, write_scores


def line(comparison: Comparison, start: str) -> str:
    (found,) = [each for each in notes(comparison) if start in each]
    return found


def bits(comparison: Comparison, label: str) -> Any:
    return next(row.cells["bits_per_byte"] for row in comparison.rows if row.labels == (label,))


def test_a_row_that_seeds_move_far_is_judged_by_its_own_seeds_whatever_other_rows_there_are(tmp_path: Path) -> None:
    steady = (0.001, -0.003, 0.002, -0.001, 0.004)
    shifts = {"bpe": steady, "unigram": steady[::-1], "wild": (0.02, 0.3, 0.02, 0.05, 0.01)}
    runs = rows(tmp_path, shifts)
    alone = bits(compare([each for each in runs if each.factors["tokenizer"] != "unigram"], FACTORS), "wild")
    among = bits(compare(runs, FACTORS), "wild")
    assert alone.p_value > 0.1
    assert among.p_value == pytest.approx(alone.p_value, rel=1e-9)
    assert among.detectable > 0.1


def test_a_tokenizer_that_loses_text_is_named_where_bits_are_of_all_of_it(tmp_path: Path) -> None:
    runs = rows(tmp_path, {"bpe": (0.0,)}) + rows(tmp_path, {"stripped": (0.1,)}, lossy=True)
    assert line(compare(runs, FACTORS), "scored text").endswith("that lose none: stripped.")
    assert not any("scored text" in each for each in notes(compare(rows(tmp_path / "2", {"bpe": (0.0,)}), FACTORS)))


def test_that_weights_are_means_of_checkpoints_is_said(tmp_path: Path) -> None:
    ten, one = ({"evaluation": {"average_checkpoints": number}} for number in (10, 1))
    alike = rows(tmp_path / "0", {"bpe": (0.0,), "bytes": (0.1,)}, config=ten)
    assert line(compare(alike, FACTORS), "Weights that are").endswith(
        "without fine-tuning are the mean of those of 10 checkpoints, up to the scored one."
    )
    field = "evaluation.average_checkpoints"
    mixed = [
        replace(each, factors={**each.factors, field: number})
        for number, config in (("1", one), ("10", ten))
        for each in rows(tmp_path / number, {"bpe": (0.0,)}, config=config)
    ]
    single = rows(tmp_path / "2", {"bpe": (0.0,), "bytes": (0.1,)}, config=one)
    for silent in (compare(mixed, (*FACTORS, field)), compare(single, FACTORS)):  # labels say it, or there is none
        assert not any("Weights that are" in each for each in notes(silent))


def test_steps_that_were_left_out_are_named(tmp_path: Path) -> None:
    runs = rows(tmp_path, {"bpe": (0.0,)}, skipped_steps=0.0) + rows(tmp_path, {"bytes": (0.1,)}, skipped_steps=40.0)
    assert line(compare(runs, FACTORS), "skip_bad_steps").endswith("bytes: up to 40 of 100 steps.")


def test_a_row_whose_other_seeds_failed_is_one_of_survivors(tmp_path: Path) -> None:
    runs = rows(tmp_path, {"bpe": (0.0, 0.1, 0.2, 0.0), "bytes": (0.1, 0.2, 0.1)})
    lost = MissingRun({"tokenizer": "bytes"}, "failed: the loss of step 40 is not finite", diverged=True)
    assert line(compare(runs, FACTORS, missing=[lost]), "diverged").endswith("than the row is: bytes: 1 beside 3.")
    others = [MissingRun({"tokenizer": name}, "still running") for name in ("unigram", "bytes")]
    gone = [replace(each, gone=("its training is gone",)) for each in runs]
    assert not any("diverged" in each for each in notes(compare(gone, FACTORS, missing=others)))


def test_how_much_of_the_documents_of_a_fine_tuned_task_rows_read_is_said_where_some_are_cut(tmp_path: Path) -> None:
    def told(name: str, *read: tuple[int, float]) -> list[str]:
        runs = []
        for label, (cut, size) in zip(("bpe", "bytes"), read, strict=True):
            made = run(tmp_path / name, label, 0)
            directory = tmp_path / name / f"{label}-finetuned"
            statistics = {"tasks": {"qmsum": {"documents_cut": cut, "document_bytes": size}}}
            scores = {("qmsum", 0): [0.5] * 40}
            write_scores(directory, scores, metric="rouge_geometric_mean", statistics=statistics)
            runs.append(replace(made, finetuned=directory))
        return [each for each in notes(compare(runs, FACTORS)) if "lost their end" in each]

    (unlike,) = told("unlike", (7, 1800.2), (9, 640.0))
    assert "read 640 to 1,800 bytes of one on average, finetuning.document_characters lets all rows" in unlike
    (alike,) = told("alike", (7, 900.0), (7, 900.0))
    assert alike.endswith("read 900 bytes of one on average, in all rows alike.")
    (one,) = told("one", (0, 1800.0), (9, 640.0))
    assert "read 640 to 1,800 bytes" in one and "in all rows alike" not in one
    assert told("whole", (0, 1800.0), (0, 1800.0)) == []


def started(checkpoint: str) -> dict[str, Any]:
    return {"start": {"kind": "checkpoint"}, "fingerprints": {"start": {"model": checkpoint}}}


def test_seeds_that_go_on_from_one_checkpoint_a_row_are_not_seeds_of_models(tmp_path: Path) -> None:
    steady = (0.001, -0.003, 0.002)
    for labels in (("a", "b"), ("a", "a")):
        root = tmp_path / "".join(labels)
        runs = rows(root, {"bpe": steady}, config=started(labels[0]))
        runs += rows(root, {"other": [0.5 + each for each in steady]}, config=started(labels[1]))
        runs = [
            replace(each, factors={"tokenizer": each.factors["tokenizer"], "start": each.factors["tokenizer"]})
            for each in runs
        ]
        found = compare(runs, ("tokenizer", "start"))
        cell = found.rows[1].cells["bits_per_byte"]
        if labels[0] == labels[1]:
            assert cell.p_adjusted is not None
            assert line(found, "Training goes on from checkpoints")
        else:
            assert (cell.p_value, cell.p_adjusted, cell.detectable, cell.best) == (None, None, None, False)
            assert line(found, "another checkpoint than the row").endswith("moved them further: other · other.")


def test_rows_of_one_checkpoint_are_judged_beside_those_of_another(tmp_path: Path) -> None:
    steady = (0.001, -0.003, 0.002)
    runs = [
        replace(each, factors={"start": checkpoint, "tokenizer": each.factors["tokenizer"]})
        for checkpoint in ("a", "b")
        for each in rows(
            tmp_path / checkpoint,
            {"bpe": steady, "other": [0.5 + shift for shift in steady]},
            config=started(checkpoint),
        )
    ]
    table = replace(default_table(), baseline={"tokenizer": "bpe"})
    found = compare(runs, ("start", "tokenizer"), table=table)
    (effect,) = found.effects
    assert (effect.contrast.values, effect.contrast.pairs) == (("other",), ((1, 0), (3, 2)))
    assert effect.p_adjusted is not None
    assert not any("another checkpoint than the row" in each for each in notes(found))


def test_a_seed_that_is_held_is_named_in_caption_and_notes(tmp_path: Path) -> None:
    held = {"seeds": {"weights": None, "order": 0, "contexts": 0, "dropout": None}}
    shifts = {"bpe": (0.001, -0.003, 0.002), "bytes": (0.5, 0.503, 0.499)}
    found = compare(rows(tmp_path, shifts, config=held), FACTORS)
    assert seeds_note(found) == (
        "±: half the 95 % interval over seeds (with seeds.order and seeds.contexts held) and items"
    )
    assert line(found, "seeds.order and seeds.contexts are the same in all runs of a row")
    free = compare(rows(tmp_path / "2", shifts, config={"seeds": dict.fromkeys(held["seeds"])}), FACTORS)
    assert free.held == ()
    assert seeds_note(free) == "±: half the 95 % interval over seeds and items"


def accuracies(root: Path, label: str, seed: int, tasks: Sequence[str], items: int = 60, **more: Any) -> FinishedRun:
    right = {
        (task, 0): np.random.default_rng([len(label), seed, index]).random(items) < 0.3 + 0.5 * (label == "unigram")
        for index, task in enumerate(tasks)
    }
    return record(root, f"{label}{seed}", {"tokenizer": label}, right, seed=seed, **more)


def test_where_a_measure_lacks_a_score_others_are_still_marked(tmp_path: Path) -> None:
    runs = [
        accuracies(tmp_path, label, seed, ("piqa",) if (label, seed) == ("unigram", 2) else ("piqa", "boolq"))
        for label in ("bpe", "unigram")
        for seed in range(3)
    ]
    found = compare(runs, FACTORS, table=replace(default_table(), primary=("piqa",)))
    assert any(cell.best for cell in found.rows[1].cells.values())


def test_prompts_that_rows_cut_otherwise_and_few_that_fit_allow_no_inference(tmp_path: Path) -> None:
    names = [f"piqa-{item:04d}" for item in range(60)]
    runs = [
        accuracies(
            tmp_path,
            label,
            seed,
            ("piqa",),
            statistics={"heldout": {}, "tasks": {"piqa": {"truncated_items": {"0": names[:40] if cut else []}}}},
        )
        for label, cut in (("bpe", False), ("unigram", True))
        for seed in range(3)
    ]
    found = compare(runs, FACTORS)
    for key in ("piqa/mean", "piqa/0_shot"):
        if (cell := found.rows[1].cells.get(key)) is not None:
            assert (cell.p_value, cell.p_adjusted, cell.half_width, cell.best) == (None, None, None, False)
    assert "piqa 0-shot (20 whose prompt fits every run)" in line(found, "No interval, test or bold")
    (reason,) = summary(found).lines
    assert ": the prompts that fit every run are those of 20 items, and a judgement takes 30." in reason


def test_sources_that_were_cut_are_counted(tmp_path: Path) -> None:
    runs = [
        record(tmp_path, label, {"tokenizer": label}, {}, heldout=[(8.0, 4)] * 40, statistics={"cut_sources": cut})
        for label, cut in (("bpe", 2), ("characters", 31))
    ]
    assert "2 to 31 of 40 held-out pairs, not alike in all rows" in line(compare(runs, FACTORS), "Sources longer")
    assert not any("Sources longer" in each for each in notes(compare(rows(tmp_path, {"bytes": (0.0,)}), FACTORS)))


def test_one_seed_of_few_items_speaks_of_no_spread_and_no_bold_number(tmp_path: Path) -> None:
    """Neither in the notes, nor in a caption of a table or of a picture."""
    for items, tested in ((10, False), (40, True)):
        runs = [
            record(tmp_path / str(items), label, {"tokenizer": label}, {("piqa", 0): ([1, 0] * items)[place:][:items]})
            for place, label in enumerate(("bpe", "unigram"))
        ]
        report = write_report(runs, title="One", factors=FACTORS, directory=tmp_path / f"report{items}")
        page = report.files["report.html"].read_text(encoding="utf-8")
        assert "±" not in page.partition("<body>")[2]
        assert ("over these models' items alone</summary>" in unescape(page)) is tested
        assert "detectable effects" not in page
        assert not any(cell.best for row in report.comparison.rows for cell in row.cells.values())
        assert "'mean' is over the shots" not in page


SEEDS = (0.0, 0.001, 0.002)
WORSE = (0.3, 0.301, 0.302)


def test_bits_of_a_lossy_tokenizer_are_not_judged_against_those_of_a_lossless_one(tmp_path: Path) -> None:
    whole = rows(tmp_path / "0", {"bpe": SEEDS, "bytes": WORSE})
    found = compare([*whole, *rows(tmp_path / "1", {"stripped": WORSE}, lossy=True)], FACTORS)
    assert bits(found, "bytes").p_adjusted < 0.05
    lossy = bits(found, "stripped")
    assert lossy.difference == pytest.approx(0.3, abs=0.01)
    assert (lossy.p_value, lossy.interval, lossy.p_adjusted, lossy.detectable) == (None, None, None, None)
    assert [effect.contrast.values for effect in found.effects] == [("bytes",)]
    assert not any(bits(found, each).best for each in ("bpe", "bytes", "stripped"))
    assert not any("share fewer than three seeds" in each for each in notes(found))
    told, left = summary(found).lines
    assert "bytes is worse than bpe" in told
    assert left.startswith("Nothing can be said of stripped: ")


def test_tokenizers_that_lose_text_alone_are_judged_against_each_other_and_two_unlike_are_not(tmp_path: Path) -> None:
    lossy = rows(tmp_path / "0", {"stripped": SEEDS, "words": WORSE}, lossy=True)
    assert bits(compare(lossy, FACTORS), "words").p_adjusted < 0.05
    unlike = compare([*lossy[:3], *rows(tmp_path / "1", {"bytes": WORSE})], FACTORS)
    (told,) = summary(unlike).lines
    assert told.endswith(": the tokenizer of one of two rows that are compared loses text, and the other's does not.")


@pytest.mark.parametrize("changed", [0, 1])
def test_a_lossy_tokenizer_is_judged_where_it_gives_back_all_that_is_scored(changed: int, tmp_path: Path) -> None:
    lossy = rows(tmp_path / "1", {"llama": WORSE}, lossy=True)
    for each in lossy:
        assert each.scores is not None
        statistics = {"heldout": {}, "tasks": {}, "changed_documents": changed}
        (each.scores / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    whole = rows(tmp_path / "0", {"bpe": SEEDS})
    found = compare([*whole, *lossy], FACTORS)
    assert (bits(found, "llama").p_adjusted is None) is bool(changed)
    gone = [*lossy, *rows(tmp_path / "2", {"llama": (0.3,) * 4}, lossy=True)[3:]]
    shutil.rmtree(gone[-1].scores or "")
    among = compare([*whole, *gone], FACTORS)
    assert (bits(among, "llama").p_adjusted is None) is bool(changed)
    assert any("lose some of the scored text" in each for each in notes(found)) is bool(changed)


def test_a_tokenizer_that_was_there_already_may_have_seen_what_is_held_out(tmp_path: Path) -> None:
    existing = {"tokenizer": {"kind": "existing"}}
    mine = rows(tmp_path / "0", {"mine": (0.0,)}, config=existing)
    beside = [replace(each, vocabulary=tmp_path / "a") for each in mine]
    trained = [replace(each, vocabulary=tmp_path / "b") for each in rows(tmp_path / "1", {"bpe": (0.0,)})]
    told = line(compare([*trained, *beside], FACTORS), "there already")
    assert told.startswith("Warning: ") and told.endswith("alone: mine.")
    other = [replace(each, factors={"tokenizer": "other"}) for each in beside]
    alike = [*beside, *other]
    assert not any("there already" in each for each in notes(compare(alike, FACTORS)))


def test_sizes_of_vocabularies_are_told_where_the_table_does_not_ask_for_them(tmp_path: Path) -> None:
    def sized(first: int, second: int, factor: str) -> list[str]:
        runs = [
            replace(each, vocabulary_size=size, factors={factor: str(size)})
            for size in (first, second)
            for each in rows(tmp_path / f"{first}-{second}-{size}-{factor}", {"bpe": (0.0,)})
        ]
        return [each for each in notes(compare(runs, (factor,))) if "not of one size" in each]

    (told,) = sized(8192, 6780, "arm")
    assert told.startswith("Vocabularies are not of one size: 8192 8,192; 6780 6,780 tokens.")
    assert sized(8192, 8190, "arm") == []
    assert sized(8192, 6780, "tokenizer.vocab_size") == []
