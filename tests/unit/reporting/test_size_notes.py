"""What is said of runs that divide equal text into other steps, batches or contexts."""

from pathlib import Path

from paribus.reporting.notes.sizes import other_sizes
from paribus.reporting.table.comparison import Comparison, compare
from support.tables import FACTORS, config_of, notes, record

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
    assert other_sizes(comparison) == []
    assert not {"batch_bytes", "context_bytes"} & {column.key for column in comparison.columns}
