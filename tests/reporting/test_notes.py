"""Notes on text that trainings have in common, and on steps, batches and contexts of equal text."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paribus.ordering.arrays import save_array
from paribus.reporting.compare import Comparison, common_text_notes, compare, remedies
from paribus.reporting.notes import other_sizes
from paribus.reporting.runs import FinishedRun
from support.tables import FACTORS, config_of, notes, record

TOKENIZER = ("tokenizer",)


def run(root: Path, tokenizer: str, seed: int, readings: Sequence[int] | None, **changes: object) -> FinishedRun:
    made = record(root, f"{tokenizer}{seed}", {"tokenizer": tokenizer}, {("continuation", 0): [True] * 40}, seed=seed)
    path = root / f"{tokenizer}{seed}.npy"
    if readings is not None:
        save_array(path, np.array(readings, dtype=np.uint8))
    packing = {"shuffle": changes.pop("shuffle", "text"), "kind": changes.pop("packing", "concatenate")}
    order = str(changes.pop("ordering", "standard"))
    packing |= {"stretch_bytes": changes.pop("stretch_bytes", None)}
    model = {**made.config["model"], "context_length": changes.pop("context_length", 128)}
    corpus = {**made.config["corpus"], "sample": changes.pop("sample", None)}
    config = {**made.config, "corpus": corpus, "packing": packing, "ordering": {"kind": order}, "model": model}
    training = {**made.training, "epochs": changes.pop("epochs", 0.5)}
    training |= {"straddling": changes.pop("straddling", None)}
    known = path if readings is not None else None
    factors = {**made.factors, "ordering": order, "model": str(model), "packing": str(packing)}
    return replace(made, config=config, factors=factors, training=training, readings=known)


def under(runs: Sequence[FinishedRun]) -> list[str]:
    return [line for line in notes(compare(runs, TOKENIZER)) if "training text" in line.lower() and "share" in line]


def test_the_share_of_common_text_is_of_each_row_against_its_baseline_at_one_seed(tmp_path: Path) -> None:
    # The rows of one seed have 19 of 20 readings in common, or all; those of different seeds none.
    first = [[1] * 20 + [0] * 20, [0] * 20 + [1] * 20]
    runs = [run(tmp_path, "bpe", seed, first[seed]) for seed in (0, 1)]
    runs += [run(tmp_path, "bytes", 0, [1] * 19 + [0] * 20 + [1]), run(tmp_path, "bytes", 1, [0] * 20 + [1] * 20)]
    assert under(runs) == [
        "Training text that two rows which are compared share at one seed: 95.0% to 100.0% of what the one that read "
        "less has read, 95.0% to 100.0% of what the other has."
    ]
    for straddling in (0.03, 0.09):
        runs += [run(tmp_path, f"{straddling}", 0, first[0], straddling=straddling)]
    assert under(runs)[0].endswith(" Contexts with text of two stretches of what is shuffled: up to 9.0%.")


def test_the_steps_at_which_both_read_it_are_compared(tmp_path: Path) -> None:
    one, other = run(tmp_path, "bpe", 0, [1] * 8), run(tmp_path, "bytes", 0, [1] * 8)
    steps = np.array([0, 1, 2, 3, 4, 5, 6, -1]), np.array([0, 1, 7, 9, 10, 10, -1, 7])
    runs = [replace(each, find_steps=lambda at=at: at) for each, at in zip((one, other), steps, strict=True)]
    assert under(runs)[0].endswith(" Of it both first read 33.3% at the same step, and 66.7% within 5 steps.")
    assert "at the same step" not in under([runs[0], other])[0]


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"shuffle": "contexts", "epochs": 2.0}, "packing.shuffle=text lets all tokenizers read the same text"),
        ({"shuffle": "none"}, "packing.shuffle=text lets"),
        (
            {"ordering": "in_context"},
            "a budget below an epoch takes other documents from each order: corpus.sample=3.5MB chooses them before",
        ),
        ({"ordering": "in_context", "sample": 3_600_000}, None),
        ({"ordering": "in_context", "sample": 9_000_000}, "corpus.sample=3.5MB chooses them before"),
        ({"ordering": "nn", "sample": 3_600_000}, "ordering=nn repeats documents"),
        ({"packing": "best_fit"}, "packing=concatenate has more in common"),
        ({}, "a few contexts of each stretch of text: a larger one"),
        ({"context_length": 64, "epochs": 2.0}, "give all one packing.stretch_bytes"),
        ({"context_length": 64, "stretch_bytes": 4096}, "a few contexts of each stretch"),
        ({"packing": "pair", "shuffle": "contexts", "epochs": 2.0}, None),
        ({"ordering": "in_context", "epochs": 2.0}, None),
    ],
)
def test_little_common_text_has_its_remedy(tmp_path: Path, changes: dict[str, object], remedy: str | None) -> None:
    only = ("ordering", "context_length")
    own = {name: value for name, value in changes.items() if name not in only}
    runs = [run(tmp_path, "bpe", 0, [1, 1, 0, 0], **own), run(tmp_path, "bytes", 0, [0, 1, 1, 1], **changes)]
    comparison = compare(runs, (*TOKENIZER, "ordering", "model", "packing"))
    told = remedies(comparison.common_text)
    assert len(told) == (remedy is not None)
    assert (remedy or "") in "".join(told)
    (line,) = (line for line in notes(comparison) if "share at one seed" in line)
    assert line.endswith(": 50.0% of what the one that read less has read, 33.3% of what the other has.")


def test_nothing_is_said_where_records_do_not_say_what_was_read_or_the_corpora_differ(tmp_path: Path) -> None:
    known, unknown = run(tmp_path, "bpe", 0, [1, 1]), run(tmp_path, "bytes", 0, None)
    assert under([known, unknown]) == []
    other = replace(run(tmp_path / "larger", "bytes", 0, [1, 1]), corpus={"digest": "another"})
    assert compare([replace(known, corpus={"digest": "one"}), other], TOKENIZER).common_text == []
    assert common_text_notes([]) == []


BPE = {"tokenizer": "bpe", "encoder": "merge_rank", "ordering": "standard"}
SCAFFOLD = {"tokenizer": "scaffold_bpe", "encoder": "merge_rank", "ordering": "standard"}
TEXT = 480_000


def compared(tmp_path: Path, *arms: tuple[int, int], batch_bytes: int | None = None) -> Comparison:
    """Of runs of equal text with so many steps and contexts a step."""
    runs = []
    for number, (labels, (steps, batch)) in enumerate(zip((BPE, SCAFFOLD), arms, strict=True)):
        sizes = {"batch_bytes": TEXT / steps, "context_bytes": TEXT / steps / batch}
        training = {"text_bytes": TEXT, "steps": steps} | sizes
        config = config_of(labels, training__batch_bytes=batch_bytes)
        runs.append(record(tmp_path, str(number), labels, {("boolq", 0): [0, 1]}, training=training, config=config))
    return compare(runs, FACTORS)


def test_arms_with_other_steps_say_so_and_show_them(tmp_path: Path) -> None:
    comparison = compared(tmp_path, (199, 20), (391, 20))
    assert {"steps", "batch_bytes", "context_bytes"} <= {column.key for column in comparison.columns}
    (told,) = other_sizes(comparison)
    assert told in notes(comparison)
    assert told == (
        "Not alike in all runs: steps 199 to 391; text a step 1.2 KiB to 2.4 KiB; text a context 61 B to 121 B. This "
        "is part of every difference: more steps are more updates of the weights, more text a step is a less noisy "
        "update, more text a context is more to predict from. training.batch_bytes (with "
        "training.global_batch=0) and model.context_bytes (with model.context_length=0) make them alike."
    )


def test_only_what_differs_is_told(tmp_path: Path) -> None:
    comparison = compared(tmp_path, (200, 20), (200, 40))
    (told,) = other_sizes(comparison)
    assert told == (
        "Not alike in all runs: text a context 60 B to 120 B. This is part of every difference: more text a context is "
        "more to predict from. model.context_bytes (with model.context_length=0) makes them alike."
    )
    assert "batch_bytes" not in {column.key for column in comparison.columns}


def test_the_rounding_to_whole_steps_and_contexts_is_no_difference(tmp_path: Path) -> None:
    comparison = compared(tmp_path, (1000, 20), (1009, 20))
    assert not [*other_sizes(comparison)]
    assert not {"batch_bytes", "context_bytes"} & {column.key for column in comparison.columns}
