"""The view of a tracker's list of runs that has scores."""

import json

from paribus.tracking.score_view import scores_among, with_columns


def test_scores_are_what_stands_in_no_section() -> None:
    assert scores_among(["train/loss", "boolq", "bits_per_byte/train_by_tokens", "bits_per_byte"]) == {
        "boolq",
        "bits_per_byte",
    }


def test_columns_are_added_to_those_that_are_there_and_the_same_change_nothing() -> None:
    first = with_columns(None, {"piqa", "bits_per_byte"})
    both = with_columns(first, {"boolq"})
    columns = json.loads(both)["selectedColumns"]
    assert columns[:3] == ["metrics.`bits_per_byte`", "metrics.`boolq`", "metrics.`piqa`"]
    assert with_columns(both, {"piqa"}) == both


def test_no_view_is_longer_than_a_tag_of_an_experiment_may_be() -> None:
    assert len(with_columns(None, {f"task_{number:03}_{'x' * 80}" for number in range(500)})) <= 5000
