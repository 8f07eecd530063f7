"""Steps of one shape: paribus' loop beside the bare step and models of transformers."""

import json
import statistics
import subprocess
import sys
from typing import Any

from loops.shapes import Shape, configuration

from acceptance.given import ROOT, Answer, Given
from paribus.config.groups.model import EncoderDecoderModel
from paribus.modeling.counts import flops_per_token

AIMS = {"468m": 0.50, "1.2b": 0.50, "6.7b_8_layers": 0.55}
"""Share of the stated peak that the loop should reach on an H100 in bfloat16."""


def measure(given: Given) -> Answer:
    """Utilisation and milliseconds a step by loop, of one round of `benchmarks/training.py`; a missed aim is wrong."""
    file = given.work / "speed.json"
    shape = "demo" if given.tiny else given.of
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), "--device", given.device, "--shapes", shape]
    command += ["--rounds", "1", "--steps", "10", "--json", str(file), "--directory", str(given.work)]
    contestants = ["paribus", "bare_logits", *(["bare", "trainer_compiled"] if given.of == "468m" else [])]
    done = subprocess.run([*command, "--contestants", *contestants], capture_output=True, text=True, check=False)
    answer = Answer()
    answer.expect(done.returncode == 0, f"benchmarks/training.py ended with {done.returncode}: {done.stderr[-500:]}")
    if not file.exists():
        return answer
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for one in found["results"]:
        name = one["shape"]["name"]
        if one["problem"]:
            answer.wrong.append(f"{name}: {one['problem']}")
            continue
        for loop, (seconds, share) in _summary(one, found["device"]["peak"]).items():
            causal = share * _causal_share(one["shape"])
            answer.numbers[f"{name} {loop}"] = {"ms": 1e3 * seconds, "utilisation": share, "causal only": causal}
            if loop == "paribus" and not given.tiny and name in AIMS:
                answer.expect(share >= AIMS[name], f"{name}: {share:.1%} of the peak, the aim is {AIMS[name]:.0%}")
    return answer


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
