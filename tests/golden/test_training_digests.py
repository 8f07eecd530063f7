"""Pinned output of the stage `training` on a tiny input.

A value that changes means that the stage's `code_version` must change with it. Which contexts are read is pinned to
the bit; losses, which another processor rounds differently, to one part in a thousand.
"""

import json
from pathlib import Path

import pytest

from paribus.pipeline.graph import STAGES
from support.training_inputs import STEPS, execute, write_inputs

CODE_VERSION = 9
CONTEXTS = "df62eb831f398568419e17da43adfa9bad241cc8e863f29eef49f8f4cfd5fb87"
TEXT_BYTES = 877
LOSSES = {1: 5.57429, 2: 5.47283, 7: 4.47877, STEPS: 3.87407}


def test_a_training_makes_the_weights_of_its_code_version(tmp_path: Path) -> None:
    result = execute(tmp_path, "run", write_inputs(tmp_path))
    output = tmp_path / "run" / "output"
    contexts = json.loads((output / "contexts.json").read_text())
    metrics = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert STAGES["training"].code_version == CODE_VERSION
    assert contexts["indices_sha256"] == CONTEXTS
    assert result["text_bytes"] == TEXT_BYTES
    assert {step: metrics[step - 1]["train/loss"] for step in LOSSES} == pytest.approx(LOSSES, rel=1e-3)
