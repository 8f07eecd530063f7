"""Which process Linux is asked to kill first where memory runs out."""

from pathlib import Path

import pytest

from paribus.engine.processes import die_before_starter


@pytest.mark.parametrize(
    ("before", "after"), [("0", "300"), ("-500", "-200"), ("900", "1000"), ("no number", "no number")]
)
def test_a_process_is_killed_for_want_of_memory_before_its_starter(before: str, after: str, tmp_path: Path) -> None:
    score = tmp_path / "oom_score_adj"
    score.write_text(before)
    die_before_starter(score)
    assert score.read_text() == after
