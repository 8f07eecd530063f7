"""How long the first step takes where nothing was compiled before, and where it was."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from loops.shapes import CPU, GPU, configuration

from acceptance.given import Answer, Given
from acceptance.stepping import batches, stepper, synchronize


def measure(given: Given) -> Answer:
    """Seconds of the first step with a cold cache and with a warm one, and of the third step."""
    cache = given.work / "cache"
    found = {}
    for name in ("cold", "warm"):
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TRITON_CACHE_DIR": str(cache / "triton")}
        command = [sys.executable, "-m", "acceptance.measures.compiling", given.device, str(given.work / name)]
        subprocess.run(command, env=environment, check=True)
        found[name] = json.loads((given.work / name).read_text(encoding="utf-8"))
    numbers = {f"{name} first step s": seconds[0] for name, seconds in found.items()}
    answer = Answer(numbers | {"third step s": found["warm"][2]})
    answer.expect(found["warm"][0] <= found["cold"][0] + 5, "what was compiled is not found again")
    return answer


def first_steps(device: str) -> list[float]:
    """Seconds of the first three steps of a compiled model."""
    shape = CPU["demo"] if device == "cpu" else GPU["468m"]
    config = configuration(shape, 10, device, "training.compile=always", "training.micro_batch=2")
    given = Given(device, device == "cpu", ".", 0)
    stepped = stepper(config.model, shape.vocab_size, config.training, given.torch_device)
    found = []
    for batch in batches(2, shape.context_length, shape.vocab_size, 3):
        began = time.perf_counter()
        stepped.step(batch, 1e-4)
        synchronize(given.torch_device)
        found.append(time.perf_counter() - began)
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(first_steps(sys.argv[1])), encoding="utf-8")
