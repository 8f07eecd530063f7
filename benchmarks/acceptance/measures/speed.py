"""Steps of one shape: paribus' loop beside the bare step and models of transformers."""

import json
import statistics
import subprocess
import sys
import time
from typing import Any

from shapes import Shape, configuration

from acceptance.given import ROOT, Answer, Given
from paribus.config.groups.model import EncoderDecoderModel
from paribus.modeling.parameters import flops_per_token

AIMS = {"468m": 0.50, "1.2b": 0.50, "6.7b_8_layers": 0.55}
"""Share of the stated peak that the loop should reach on an H100 in bfloat16."""
FILLED = {"468m": 64}
"""Micro-batches that the loop has memory for and the models of transformers, which make all logits, have not."""

SPARE_S = 5.0
"""Of the step's seconds, in which what was measured until then is told."""


def measure(given: Given) -> Answer:
    """Utilisation and milliseconds a step by loop, of one round of `benchmarks/training.py`; a missed aim is wrong.

    What a GPU's memory has room for is measured of the loop alone, too; either may reach the aim. Where the step's time
    is over, what was measured until then is told.
    """
    answer, shape, reached = Answer(), "demo" if given.tiny else given.of, 0.0
    until = given.until - SPARE_S
    contestants = ["paribus", "bare_logits", *(["bare", "trainer"] if given.of == "468m" else [])]
    calls = {shape: ["--contestants", *contestants]}
    if filled := FILLED.get(given.of):
        rows = 2 if given.tiny else filled
        calls[f"{shape}, micro-batch {rows}"] = ["--contestants", "paribus", "--micro-batch", str(rows)]
    for number, (name, options) in enumerate(calls.items()):
        for loop, (seconds, share, causal) in _measured(answer, given, shape, number, options, until=until).items():
            answer.numbers[f"{name} {loop}"] = {"ms": 1e3 * seconds, "utilisation": share, "causal only": causal}
            reached = max(reached, share if loop == "paribus" else 0.0)
    # What was not measured may have reached it.
    if not given.tiny and given.of in AIMS and not answer.late:
        answer.expect(reached >= AIMS[given.of], f"{shape}: {reached:.1%} of the peak, the aim is {AIMS[given.of]:.0%}")
    return answer


def _measured(
    answer: Answer, given: Given, shape: str, number: int, options: list[str], *, until: float
) -> dict[str, tuple[float, float, float]]:
    """Seconds a step, share of the peak, and that without attention to the future, by loop."""
    file = given.work / f"speed_{number}.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), "--device", given.device, "--shapes", shape]
    command += ["--rounds", "1", "--steps", "10", "--json", str(file), *options]
    left = max(until - time.monotonic(), 1.0)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left)
        ended = f"benchmarks/training.py ended with {done.returncode}: {done.stderr[-500:]}"
        answer.expect(done.returncode == 0, ended)
    except subprocess.TimeoutExpired:
        answer.late.append(f"{shape}: not all was measured in the time of the step")
    if not file.exists():
        return {}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    (result,) = found["results"]
    if result["problem"]:
        answer.wrong.append(f"{shape}: {result['problem']}")
        return {}
    causal = _causal_share(result["shape"])
    summary = _summary(result, found["device"]["peak"])
    return {loop: (seconds, share, share * causal) for loop, (seconds, share) in summary.items()}


def _causal_share(shape: dict[str, Any]) -> float:
    """What is left of the FLOPs where the half of attention is not counted that lies in the future."""
    made = Shape(**shape | {"overrides": tuple(shape["overrides"])})
    model = configuration(made, 10, "cpu").model
    assert not isinstance(model, EncoderDecoderModel)
    whole = flops_per_token(model, made.vocab_size)
    return 1 - 6 * model.layers * model.width * model.context_length / whole


def _summary(result: dict[str, Any], peak: float) -> dict[str, tuple[float, float]]:
    """Median seconds a step and share of the peak, by loop."""
    shape, summary = result["shape"], {}
    tokens = shape["global_batch"] * shape["context_length"]
    for loop, rounds in result["answers"].items():
        if windows := [seconds for one in rounds for seconds in one.get("seconds", [])]:
            middle = statistics.median(windows)
            summary[loop] = middle, result["flops"] * tokens / middle / peak
    return summary
