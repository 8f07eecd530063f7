"""The few numbers by which a run is known."""

from paribus.config.metrics import PREFERRED, main_scores, score_texts
from paribus.reporting.measures import METRICS


def test_a_task_is_known_by_the_metric_that_a_table_takes() -> None:
    assert list(METRICS) == list(PREFERRED)


def test_bits_per_byte_come_first_and_numbers_of_shots_are_averaged() -> None:
    logged = {
        "eval/piqa/0shot/choice_bits": 3.0,
        "eval/boolq/0shot/acc": 0.5,
        "eval/boolq/5shot/acc": 0.75,
        "eval/boolq/5shot/acc_norm": 0.1,
        "eval/mine/0shot/measured": 7.0,
        "eval/mine/0shot/other": 8.0,
        "eval/heldout_concatenated/bits_per_byte": 0.7,
        "eval/bits_per_byte": 0.75,
    }
    assert list(main_scores(logged).items()) == [
        ("bits_per_byte", 0.75),
        ("boolq", 0.625),
        ("mine", 7.0),
        ("piqa", 3.0),
    ]


def test_more_than_there_is_room_for_are_counted() -> None:
    scores = {"bits_per_byte": 0.75, "boolq": 0.625, "piqa": 0.5}
    assert score_texts(scores, most=3) == ["0.7500 bits per byte", "boolq 0.625", "piqa 0.5"]
    assert score_texts(scores, most=1) == ["0.7500 bits per byte", "2 more"]
