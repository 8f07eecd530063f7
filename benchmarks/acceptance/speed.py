"""Steps of one shape: paribus' loop beside the bare step and models of transformers."""

import json
import os
import statistics
import subprocess
import sys
from typing import Any

from shapes import Shape, configuration

from acceptance.given import ROOT, Answer, Given
from paribus.modeling.parameters import flops_per_token

AIMS = {"468m": 0.50, "1.2b": 0.50, "6.7b_8_layers": 0.55}
"""Share of the stated peak that the loop should reach on an H100 in bfloat16."""
FILLED = {"468m": 64}
"""Micro-batches that the loop has memory for and the models of transformers, which make all logits, have not."""


def speed(given: Given) -> Answer:
    """Utilisation and milliseconds a step by loop, of one round of `benchmarks/training.py`; a missed aim is wrong.

    What a GPU's memory has room for is measured of the loop alone, too; either may reach the aim.
    """
    answer, shape, reached = Answer(), "demo" if given.tiny else given.of, []
    others = ["bare_logits", "bare", "trainer"] if given.of == "468m" else ["bare_logits"]
    calls = {shape: ["--contestants", "paribus", *others]}
    if filled := FILLED.get(given.of):
        rows = 2 if given.tiny else filled
        calls[f"{shape}, micro-batch {rows}"] = ["--contestants", "paribus", "--micro-batch", str(rows)]
    for name, options in calls.items():
        found = trained(answer, given, shape, options)
        for result in found.get("results", []):
            if result["problem"]:
                answer.wrong.append(f"{shape}: {result['problem']}")
            for loop, rounds in result["answers"].items():
                if windows := [seconds for one in rounds for seconds in one.get("seconds", [])]:
                    told = utilisation(result, statistics.median(windows), found["device"]["peak"])
                    answer.numbers[f"{name} {loop}"] = told
                    reached += [told["utilisation"]] if loop == "paribus" else []
    if not given.tiny and given.of in AIMS:
        most, aim = max(reached, default=0.0), AIMS[given.of]
        answer.expect(most >= aim, f"{shape}: {most:.1%} of the peak, the aim is {aim:.0%}")
    return answer


def trained(answer: Answer, given: Given, shape: str, options: list[str]) -> dict[str, Any]:
    """Every number of a call of `benchmarks/training.py`."""
    file = given.work / "speed.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), "--device", given.device, "--shapes", shape]
    command += ["--rounds", "1", "--steps", "10", "--json", str(file), *options]
    environment = os.environ | {"TMPDIR": given.directory}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    answer.expect(done.returncode == 0, f"training.py ended with {done.returncode}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def utilisation(result: dict[str, Any], seconds: float, peak: float) -> dict[str, float]:
    """Milliseconds a step, share of the peak, and that without the half of attention that lies in the future."""
    shape = Shape(**result["shape"] | {"overrides": tuple(result["shape"]["overrides"])})
    model: Any = configuration(shape, 10, "cpu").model
    future = 6 * model.layers * model.width * model.context_length / flops_per_token(model, shape.vocab_size)
    share = result["flops"] * shape.step_tokens / seconds / peak
    return {"ms": 1e3 * seconds, "utilisation": share, "causal only": share * (1 - future)}
