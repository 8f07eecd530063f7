"""Exact match and F1 of written answers, on the cases of the official scripts."""

import pytest

from paribus.evaluation.rows import drop_scores, squad_scores


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("1976", ["1976"], 1.0, 1.0),
        ("the Denver Broncos!", ["Denver Broncos", "The Broncos"], 1.0, 1.0),
        ("Broncos", ["Denver Broncos"], 0.0, 2 / 3),
        ("Carolina Panthers", ["Denver Broncos", "Carolina"], 0.0, 2 / 3),
        ("a an the", ["Denver"], 0.0, 0.0),
        ("", ["Denver"], 0.0, 0.0),
        ("to be or to be", ["to be"], 0.0, 4 / 7),
    ],
)
def test_squad_scores_take_the_best_answer(prediction: str, answers: list[str], exact: float, f1: float) -> None:
    scores = squad_scores(prediction, [[answer] for answer in answers])
    assert scores == {"exact_match": exact, "f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("3.0", [["3"]], 1.0, 1.0),
        ("the Bears", [["Bears"]], 1.0, 1.0),
        ("24 points", [["23 points"]], 0.0, 0.0),
        ("John Smith", [["Smith"], ["Jane"]], 0.0, 0.67),
        ("Ann", [["Ann", "Bob"]], 0.0, 0.5),
    ],
)
def test_drop_scores_align_spans_and_compare_numbers(
    prediction: str, answers: list[list[str]], exact: float, f1: float
) -> None:
    assert drop_scores(prediction, answers) == {"exact_match": exact, "f1": pytest.approx(f1)}
