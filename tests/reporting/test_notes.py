"""What the notes say of rows that are not what a reader takes them for, and what is not judged for that."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.evaluation import default_table
from paribus.ordering.arrays import save_array
from paribus.reporting.columns import Cell
from paribus.reporting.compare import Comparison, compare, remedies
from paribus.reporting.notes import other_sizes
from paribus.reporting.runs import FinishedRun, MissingRun
from paribus.reporting.table import seeds_note
from paribus.reporting.verdict import summary
from support.bits_tables import FACTORS, rows, run
from support.tables import config_of, notes, record

SEEDS = (0.0, 0.001, 0.002)
WORSE = (0.3, 0.301, 0.302)


def notes_with(comparison: Comparison, part: str) -> list[str]:
    return [line for line in notes(comparison) if part in line]


def note(comparison: Comparison, part: str) -> str:
    (line,) = notes_with(comparison, part)
    return line


def bits(comparison: Comparison, label: str) -> Cell:
    return next(row.cells["bits_per_byte"] for row in comparison.rows if row.labels == (label,))


# Trainings and tokenizers


def changed(run: FinishedRun, **changes: Any) -> FinishedRun:
    training, config = run.training | changes.pop("training", {}), run.config | changes.pop("config", {})
    return replace(run, training=training, config=config, **changes)


def dropout(draws: int, epochs: float, packing: str = "pair") -> dict[str, Any]:
    config = {"encoder": {"kind": "dropout", "draws": draws}, "packing": {"kind": packing}}
    return {"config": config, "training": {"epochs": epochs}}


EXISTING = {"config": {"tokenizer": {"kind": "existing"}}, "vocabulary": Path("a")}


def averaged(number: int) -> dict[str, Any]:
    return {"config": {"evaluation": {"average_checkpoints": number}}}


def lines_of(root: Path, first: dict[str, Any], second: dict[str, Any], *factors: str) -> list[str]:
    """The notes of two rows with these changes; `factors` are declared to differ, too."""
    runs = []
    for label, changes in (("bpe", first), ("bytes", second)):
        usual = run(root, label, 0)
        fields = {"vocabulary_size": 8192, "factors": usual.factors | dict.fromkeys(factors, label)}
        runs.append(changed(usual, **fields | changes))
    return notes(compare(runs, (*FACTORS, *factors)))


def test_unlike_rows_and_unusual_settings_are_named(tmp_path: Path) -> None:
    usual = "\n".join(lines_of(tmp_path / "usual", {}, {}))
    repeated, more = {"training": {"epochs": 2.34}}, {"training": {"epochs": 3.0}}
    once, thrice = dropout(1, 2.34), dropout(3, 3.5)
    skipped, smaller = {"training": {"skipped_steps": 40.0}}, {"vocabulary_size": 6780}
    for place, (first, second, begin, end) in enumerate((
        ({}, repeated, "Text was repeated, ", "2.34 epochs: bytes."),
        (repeated, more, "Text was repeated, ", "2.34 to 3 epochs: every run."),
        ({}, skipped, "Warning: training.skip_bad_steps", "bytes: up to 40 of 100 steps."),
        ({}, EXISTING, "Warning: the tokenizers of these rows were there already", "alone: bytes."),
        ({}, smaller, "Vocabularies are not of one size: bpe 8,192; bytes 6,780 tokens. ", ""),
        (once, once, "BPE-dropout drew the tokens once for up to 2.34 epochs; ", "bpe; bytes."),
        (thrice, thrice, "BPE-dropout drew the tokens 3 times for up to 3.5 epochs; ", "bpe; bytes."),
        (averaged(10), averaged(10), "Weights that are ", "those of 10 checkpoints, up to the scored one."),
    )):  # fmt: skip
        lines = lines_of(tmp_path / str(place), first, second)
        assert any(line.startswith(begin) and line.endswith(end) for line in lines), (first, second)
        assert begin not in usual


def test_runs_that_diverged_are_counted(tmp_path: Path) -> None:
    runs = rows(tmp_path, {"bpe": SEEDS, "bytes": WORSE})
    failed = MissingRun({"tokenizer": "bytes"}, "failed: the loss of step 40 is not finite", diverged=True)
    assert note(compare(runs, FACTORS, missing=[failed]), "diverged").endswith("than the row is: bytes: 1 beside 3.")
    others = [MissingRun({"tokenizer": name}, "still running") for name in ("unigram", "bytes")]
    gone = [replace(each, gone=("its training is gone",)) for each in runs]
    assert not notes_with(compare(gone, FACTORS, missing=others), "diverged")


def test_seeds_that_go_on_from_another_checkpoint_than_their_baseline_judge_no_model(tmp_path: Path) -> None:
    def continued(name: str, **starts: str) -> list[FinishedRun]:
        """A row a tokenizer, from one of these checkpoints each."""
        runs = []
        for place, (label, checkpoint) in enumerate(starts.items()):
            config = {"start": {"kind": "checkpoint"}, "fingerprints": {"start": {"model": checkpoint}}}
            shifts = {label: [0.5 * place + seed for seed in SEEDS]}
            for each in rows(tmp_path / name / checkpoint, shifts, config=config):
                runs.append(replace(each, factors={**each.factors, "start": checkpoint}))
        return runs

    factors = ("tokenizer", "start")
    same = compare(continued("same", bpe="a", other="a"), factors)
    assert same.rows[1].cells["bits_per_byte"].p_adjusted is not None
    assert note(same, "Training goes on from checkpoints")
    apart = compare(continued("apart", bpe="a", other="b"), factors)
    cell = apart.rows[1].cells["bits_per_byte"]
    assert (cell.p_value, cell.p_adjusted, cell.detectable, cell.best) == (None, None, None, False)
    assert note(apart, "another checkpoint than the row").endswith("moved them further: other · b.")

    both = [*continued("1", bpe="a", other="a"), *continued("2", bpe="b", other="b")]
    comparison = compare(both, ("start", "tokenizer"), table=replace(default_table(), baseline={"tokenizer": "bpe"}))
    (effect,) = comparison.effects
    assert (effect.contrast.values, effect.contrast.pairs) == (("other",), ((1, 0), (3, 2)))
    assert effect.p_adjusted is not None
    assert not notes_with(comparison, "another checkpoint than the row")


def test_a_seed_that_is_held_is_named_in_caption_and_notes(tmp_path: Path) -> None:
    seeds: dict[str, int | None] = {"weights": None, "order": 0, "contexts": 0, "dropout": None}
    held = compare(rows(tmp_path / "1", {"bpe": SEEDS, "bytes": WORSE}, config={"seeds": seeds}), FACTORS)
    assert seeds_note(held) == (
        "±: half the 95 % interval over seeds (with seeds.order and seeds.contexts held) and items"
    )
    assert note(held, "seeds.order and seeds.contexts are the same in all runs of a row")
    free = {"seeds": dict.fromkeys(seeds)}
    comparison = compare(rows(tmp_path / "2", {"bpe": SEEDS, "bytes": WORSE}, config=free), FACTORS)
    assert comparison.held == ()
    assert seeds_note(comparison) == "±: half the 95 % interval over seeds and items"


# What was scored


def test_rows_with_tokens_across_boundaries_or_cut_sources_are_named(tmp_path: Path) -> None:
    crossed = {"crossed_items": {"0": 2}, "crossed_choices": {"0": 5}}
    unlike = {"tasks": {"task": crossed}, "omitted_at_boundaries": 3e-6, "cut_sources": 31}

    def arm(label: str, **statistics: Any) -> FinishedRun:
        given = {"statistics": {"heldout": {}, "tasks": {}} | statistics, "heldout": [(8.0, 4)] * 40}
        return record(tmp_path, label, {"tokenizer": label}, {("task", 0): [1, 0, 1]}, **given)

    bpe, unigram = arm("bpe", cut_sources=2), arm("unigram", **unlike)
    comparison = compare([bpe, unigram], FACTORS)
    boundaries = note(comparison, "begins in the context")
    assert boundaries.endswith("(at most a share of 3e-06 of a probability was left out): 5 choices of unigram.")
    assert "2 to 31 of 40 held-out pairs, not alike in all rows" in note(comparison, "Sources longer")
    whole = compare([arm("whole")], FACTORS)
    assert not notes_with(whole, "begins in the context") and not notes_with(whole, "Sources longer")


def accuracies(root: Path, label: str, seed: int, tasks: Sequence[str], **more: Any) -> FinishedRun:
    right = {
        (task, 0): np.random.default_rng([len(label), seed, index]).random(60) < 0.3 + 0.5 * (label == "unigram")
        for index, task in enumerate(tasks)
    }
    return record(root, f"{label}{seed}", {"tokenizer": label}, right, seed=seed, **more)


ARMS = [(label, seed) for label in ("bpe", "unigram") for seed in range(3)]


def test_prompts_that_rows_cut_otherwise_and_few_that_fit_allow_no_inference(tmp_path: Path) -> None:
    names = [f"piqa-{item:04d}" for item in range(40)]
    cut = {"bpe": [], "unigram": names}
    runs = [
        accuracies(
            tmp_path,
            *arm,
            ("piqa",),
            statistics={"heldout": {}, "tasks": {"piqa": {"truncated_items": {"0": cut[arm[0]]}}}},
        )
        for arm in ARMS
    ]
    comparison = compare(runs, FACTORS)
    cell = comparison.rows[1].cells["piqa/mean"]
    assert (cell.p_value, cell.p_adjusted, cell.half_width, cell.best) == (None, None, None, False)
    assert "piqa 0-shot (20 whose prompt fits every run)" in note(comparison, "No interval, test or bold")
    (reason,) = summary(comparison).lines
    assert ": the prompts that fit every run are those of 20 items, and a judgement takes 30." in reason


# Tokenizers that lose text


def test_bits_of_a_lossy_tokenizer_are_not_judged_against_those_of_a_lossless_one(tmp_path: Path) -> None:
    whole = rows(tmp_path / "0", {"bpe": SEEDS, "bytes": WORSE})
    comparison = compare([*whole, *rows(tmp_path / "1", {"stripped": WORSE}, lossy=True)], FACTORS)
    assert note(comparison, "scored text").endswith("that lose none: stripped.")
    assert bits(comparison, "bytes").p_adjusted < 0.05
    lossy = bits(comparison, "stripped")
    assert lossy.difference == pytest.approx(0.3, abs=0.01)
    assert (lossy.p_value, lossy.interval, lossy.p_adjusted, lossy.detectable) == (None, None, None, None)
    assert [effect.contrast.values for effect in comparison.effects] == [("bytes",)]
    assert not any(bits(comparison, each).best for each in ("bpe", "bytes", "stripped"))
    finding, reason = summary(comparison).lines
    assert "bytes is worse than bpe" in finding
    assert reason.startswith("Nothing can be said of stripped: ")
    assert not notes_with(compare(whole, FACTORS), "scored text")


def test_tokenizers_that_lose_text_alone_are_judged_against_each_other_and_two_unlike_are_not(tmp_path: Path) -> None:
    lossy = rows(tmp_path / "0", {"stripped": SEEDS, "words": WORSE}, lossy=True)
    assert bits(compare(lossy, FACTORS), "words").p_adjusted < 0.05
    unlike = compare([*lossy[:3], *rows(tmp_path / "1", {"bytes": WORSE})], FACTORS)
    (reason,) = summary(unlike).lines
    assert reason.endswith(": the tokenizer of one of two rows that are compared loses text, and the other's does not.")


@pytest.mark.parametrize("changed", [0, 1])
def test_a_lossy_tokenizer_is_judged_where_it_gives_back_all_that_is_scored(changed: int, tmp_path: Path) -> None:
    whole, lossy = rows(tmp_path / "0", {"bpe": SEEDS}), rows(tmp_path / "1", {"llama": WORSE}, lossy=True)
    for each in lossy:
        assert each.scores is not None
        statistics = {"heldout": {}, "tasks": {}, "changed_documents": changed}
        (each.scores / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    gone = rows(tmp_path / "2", {"llama": (0.3,) * 4}, lossy=True)[3:]
    shutil.rmtree(gone[0].scores or "")
    for runs in ([*whole, *lossy], [*whole, *lossy, *gone]):
        comparison = compare(runs, FACTORS)
        assert (bits(comparison, "llama").p_adjusted is None) is bool(changed)
        assert bool(notes_with(comparison, "lose some of the scored text")) is bool(changed)


# Text that trainings have in common


def reading(root: Path, tokenizer: str, seed: int, readings: Sequence[int] | None, **changes: object) -> FinishedRun:
    """A run that has read so many times each piece of text; `changes` are fields of its configuration."""
    trained = record(root, f"{tokenizer}{seed}", {"tokenizer": tokenizer}, {("boolq", 0): [True] * 40}, seed=seed)
    path = root / f"{tokenizer}{seed}.npy"
    if readings is not None:
        save_array(path, np.array(readings, dtype=np.uint8))
    fields = {
        "packing": {"shuffle": "text", "kind": "concatenate", "stretch_bytes": None},
        "ordering": {"kind": "standard"},
        "model": {**trained.config["model"], "context_length": 128},
        "corpus": {**trained.config["corpus"], "sample": None},
    }
    training = {**trained.training, "epochs": 0.5, "straddling": None}
    for name, value in changes.items():
        group, _, field = name.partition("__")
        (training if group == "training" else fields[group])[field] = value
    factors = {**trained.factors, **{name: str(fields[name]) for name in ("ordering", "model", "packing")}}
    known = path if readings is not None else None
    return replace(trained, config={**trained.config, **fields}, factors=factors, training=training, readings=known)


def common_text(runs: Sequence[FinishedRun]) -> list[str]:
    return [line for line in notes(compare(runs, FACTORS)) if "training text" in line.lower() and "share" in line]


def test_the_share_of_common_text_is_of_each_row_against_its_baseline_at_one_seed(tmp_path: Path) -> None:
    # The rows of one seed have 19 of 20 readings in common, or all; those of different seeds none.
    first = [[1] * 20 + [0] * 20, [0] * 20 + [1] * 20]
    runs = [reading(tmp_path, "bpe", seed, first[seed]) for seed in (0, 1)]
    runs += [reading(tmp_path, "bytes", 0, [1] * 19 + [0] * 20 + [1]), reading(tmp_path, "bytes", 1, first[1])]
    assert common_text(runs) == [
        "Training text that two rows which are compared share at one seed: 95.0% to 100.0% of what the one that read "
        "less has read, 95.0% to 100.0% of what the other has."
    ]
    for straddling in (0.03, 0.09):
        runs += [reading(tmp_path, f"{straddling}", 0, first[0], training__straddling=straddling)]
    assert common_text(runs)[0].endswith(" Contexts with text of two stretches of what is shuffled: up to 9.0%.")


def test_the_steps_at_which_both_read_it_are_compared(tmp_path: Path) -> None:
    runs = [reading(tmp_path, "bpe", 0, [1] * 8), reading(tmp_path, "bytes", 0, [1] * 8)]
    steps = np.array([0, 1, 2, 3, 4, 5, 6, -1]), np.array([0, 1, 7, 9, 10, 10, -1, 7])
    known = [replace(each, find_steps=lambda at=at: at) for each, at in zip(runs, steps, strict=True)]
    assert common_text(known)[0].endswith(" Of it both first read 33.3% at the same step, and 66.7% within 5 steps.")
    assert "at the same step" not in common_text([known[0], runs[1]])[0]


ONE_OF = {"ordering__kind", "model__context_length"}
"""Fields in which the second run alone is changed."""
REMEDIES: list[tuple[dict[str, object], str | None]] = [
    (
        {"packing__shuffle": "contexts", "training__epochs": 2.0},
        "packing.shuffle=text lets all tokenizers read the same text",
    ),
    ({"packing__shuffle": "none"}, "packing.shuffle=text lets"),
    (
        {"ordering__kind": "in_context"},
        "a budget below an epoch takes other documents from each order: corpus.sample=3.5MB chooses them before",
    ),
    ({"ordering__kind": "in_context", "corpus__sample": 3_600_000}, None),
    ({"ordering__kind": "in_context", "corpus__sample": 9_000_000}, "corpus.sample=3.5MB chooses them before"),
    ({"ordering__kind": "nn", "corpus__sample": 3_600_000}, "ordering=nn repeats documents"),
    ({"packing__kind": "best_fit"}, "packing=concatenate has more in common"),
    ({}, "a few contexts of each stretch of text: a larger one"),
    ({"model__context_length": 64, "training__epochs": 2.0}, "give all one packing.stretch_bytes"),
    ({"model__context_length": 64, "packing__stretch_bytes": 4096}, "a few contexts of each stretch"),
    ({"packing__kind": "pair", "packing__shuffle": "contexts", "training__epochs": 2.0}, None),
    ({"ordering__kind": "in_context", "training__epochs": 2.0}, None),
]


def test_little_common_text_has_its_remedy(tmp_path: Path) -> None:
    for number, (changes, remedy) in enumerate(REMEDIES):
        root, own = tmp_path / str(number), {name: value for name, value in changes.items() if name not in ONE_OF}
        runs = [reading(root, "bpe", 0, [1, 1, 0, 0], **own), reading(root, "bytes", 0, [0, 1, 1, 1], **changes)]
        comparison = compare(runs, (*FACTORS, "ordering", "model", "packing"))
        suggested = remedies(comparison.common_text)
        assert len(suggested) == (remedy is not None), changes
        assert (remedy or "") in "".join(suggested), changes
        assert note(comparison, "share at one seed").endswith(
            ": 50.0% of what the one that read less has read, 33.3% of what the other has."
        )


# Steps, batches and contexts of equal text

TEXT = 480_000


def of_sizes(root: Path, *arms: tuple[int, int], batch_bytes: int | None = None) -> Comparison:
    """Runs of equal text with so many steps and contexts a step."""
    runs = []
    for label, (steps, batch) in zip(("bpe", "scaffold_bpe"), arms, strict=True):
        sizes = {"batch_bytes": TEXT / steps, "context_bytes": TEXT / steps / batch}
        config = config_of({"tokenizer": label}, training__batch_bytes=batch_bytes)
        training = {"text_bytes": TEXT, "steps": steps} | sizes
        runs.append(record(root, label, {"tokenizer": label}, {("boolq", 0): [0, 1]}, training=training, config=config))
    return compare(runs, FACTORS)


SIZES = {"batch_bytes", "context_bytes"}


def test_rows_with_other_steps_and_contexts_are_named_with_what_makes_them_alike(tmp_path: Path) -> None:
    both = of_sizes(tmp_path / "both", (199, 20), (391, 20))
    assert {"steps", *SIZES} <= {column.key for column in both.columns}
    (line,) = other_sizes(both)
    assert line in notes(both)
    assert line == (
        "Not alike in all runs: steps 199 to 391; text a step 1.2 KiB to 2.4 KiB; text a context 61 B to 121 B. This "
        "is part of every difference: more steps are more updates of the weights, more text a step is a less noisy "
        "update, more text a context is more to predict from. training.batch_bytes (with "
        "training.global_batch=0) and model.context_bytes (with model.context_length=0) make them alike."
    )
    contexts = of_sizes(tmp_path / "contexts", (200, 20), (200, 40))
    assert list(other_sizes(contexts)) == [
        "Not alike in all runs: text a context 60 B to 120 B. This is part of every difference: more text a context is "
        "more to predict from. model.context_bytes (with model.context_length=0) makes them alike."
    ]
    assert "batch_bytes" not in {column.key for column in contexts.columns}
