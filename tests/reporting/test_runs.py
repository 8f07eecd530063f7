"""Scores of runs as they are read: by item and checkpoint, and without items whose prompt some run cut."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from paribus.errors import DataError
from paribus.reporting.compare import compare
from paribus.reporting.runs import FinishedRun, load_scores
from support.tables import FACTORS, notes, record, write_scores

BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
LBPE = BPE | {"encoder": "longest_first"}
RIGHT = [1, 0, 1, 1, 0, 0] * 5


def test_scores_are_read_item_by_item_for_each_checkpoint(tmp_path: Path) -> None:
    directory = write_scores(tmp_path / "scores", {("continuation", 0): RIGHT}, heldout=[(8, 4)], checkpoints=3)
    scores = load_scores(directory)
    assert scores.checkpoints == 3
    block = scores.blocks["continuation", 0, "acc"]
    assert block.items == tuple(f"continuation-{item:04d}" for item in range(len(RIGHT)))
    assert block.values.tolist() == [RIGHT] * 3
    assert (scores.heldout.documents, scores.heldout.bytes.tolist()) == (("doc-000",), [4])
    assert scores.heldout.bits.tolist() == [[8]] * 3


def test_scores_that_cannot_be_right_are_refused(tmp_path: Path) -> None:
    def refusal(name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> str:
        directory = write_scores(tmp_path / name, {("boolq", 0): RIGHT}, checkpoints=2)
        path = directory / "items.parquet"
        change(pd.read_parquet(path)).to_parquet(path)
        with pytest.raises(DataError) as error:
            load_scores(directory)
        return str(error.value)

    twice = refusal("twice", lambda items: pd.concat([items, items.head(1)]))
    assert "1 repeated lines, the first at checkpoint 0, task boolq, shots 0" in twice
    assert "not scored on the same lines" in refusal("unlike", lambda items: items.iloc[1:])
    changed = refusal("changed", lambda items: items.assign(doc_hash=["other", *items["doc_hash"][1:]]))
    assert "content differs between checkpoints" in changed
    assert "lacks the columns doc_hash" in refusal("narrow", lambda items: items.drop(columns="doc_hash"))
    (write_scores(tmp_path / "gone", {("boolq", 0): RIGHT}) / "heldout.parquet").unlink()
    with pytest.raises(DataError, match=r"heldout\.parquet is missing"):
        load_scores(tmp_path / "gone")


# Items whose prompt does not fit the context of some run


def items(*places: int) -> list[str]:
    return [f"boolq-{place:04d}" for place in range(*places)]


def cut_runs(root: Path, *cut: Sequence[str], labels: Sequence[Mapping[str, str]] = (BPE, LBPE)) -> list[FinishedRun]:
    """Rows whose prompts of the named items were cut at 5 shots; of 40 items ten are right in one row only."""
    right = [[1] * 40, [0] * 10 + [1] * 30]
    return [
        record(
            root,
            str(number),
            row,
            {("boolq", 0): right[number], ("boolq", 5): right[number]},
            statistics={"heldout": {}, "tasks": {"boolq": {"truncated_items": {"0": [], "5": list(names)}}}},
        )
        for number, (row, names) in enumerate(zip(labels, cut, strict=True))
    ]


def test_items_whose_prompt_some_run_cut_are_left_out_for_all_at_all_shots(tmp_path: Path) -> None:
    comparison = compare(cut_runs(tmp_path, items(5), items(3, 8)), FACTORS)
    for key in ("boolq/0_shot", "boolq/5_shot", "boolq/mean"):
        cells = [row.cells[key] for row in comparison.rows]
        assert [(cell.items, cell.value) for cell in cells] == [(32, 1.0), (32, 30 / 32)]
        assert cells[1].error == pytest.approx(stats.sem([0] * 2 + [1] * 30))
        assert cells[1].test is not None
        assert cells[1].test.items == 32
    note = "boolq: 8 of 40 items are left out in all rows, since their prompt does not fit"
    assert note in " ".join(notes(comparison))


def test_rows_of_other_context_lengths_leave_cut_prompts_out_too(tmp_path: Path) -> None:
    runs = []
    for length, run in zip((64, 128), cut_runs(tmp_path, items(8), items(8), labels=(BPE, BPE)), strict=True):
        config = dict(run.config) | {"model": run.config["model"] | {"context_length": length}}
        runs.append(replace(run, config=config, factors={**run.factors, "model.context_length": str(length)}))
    comparison = compare(runs, (*FACTORS, "model.context_length"))
    assert [row.cells["boolq/5_shot"].items for row in comparison.rows] == [32, 32]


@pytest.mark.parametrize("cut", [11, 40])
def test_all_items_are_scored_and_noted_where_too_few_prompts_fit(tmp_path: Path, cut: int) -> None:
    comparison = compare(cut_runs(tmp_path, items(cut), []), FACTORS)
    assert [row.cells["boolq/5_shot"].items for row in comparison.rows] == [40, 40]
    # Nothing was cut where there are no examples, so that may be judged.
    fewest = [comparison.rows[1].cells[f"boolq/{column}"].fewest for column in ("0_shot", "5_shot", "mean")]
    assert fewest == [40, 40 - cut, 40 - cut]
    note = f"boolq: of 40 items {cut} at 5 shots have a prompt that does not fit the context of some run"
    assert note in " ".join(notes(comparison))
