"""What there is, and how fast a matrix product and a copy are on it."""

import platform
import time
from collections.abc import Callable

import torch
from machine import version_of
from training_loops import synchronize

from acceptance.given import Answer, Given
from paribus.training.fit import missing_for_compilation
from paribus.training.metrics import peak_flops
from paribus.training.parallel import device_name

PACKAGES = ("torch", "triton", "transformers", "accelerate", "lm-eval", "hydra-core", "mlflow", "numpy", "faiss-cpu")
BEST_OF = 10


def environment(given: Given) -> Answer:
    """Versions and peaks."""
    device = given.torch_device
    answer = Answer({"device": device_name(device), "python": platform.python_version()})
    answer.numbers["compiler"] = missing_for_compilation(gpu=True) or "there"
    answer.numbers["packages"] = {package: version_of(package) or "not there" for package in PACKAGES}
    if not given.tiny:
        answer.numbers |= {"cuda": torch.version.cuda, "memory GiB": torch.cuda.mem_get_info(device)[1] / 2**30}
        answer.expect(torch.cuda.is_bf16_supported(including_emulation=False), "the GPU has no bfloat16")
    size = 256 if given.tiny else 8192
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    rate, stated = 2 * size**3 / best(lambda: left @ right, device), peak_flops(device_name(device))
    answer.numbers |= {"bf16 TFLOP/s": rate / 1e12} | ({"of the stated peak": rate / stated} if stated else {})
    source = torch.zeros(2**20 if given.tiny else 2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    answer.numbers["copy GB/s"] = 2 * source.nbytes / best(lambda: target.copy_(source), device) / 1e9
    return answer


def best(computed: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of ten."""
    found = []
    for _ in range(BEST_OF):
        synchronize(device)
        began = time.perf_counter()
        computed()
        synchronize(device)
        found.append(time.perf_counter() - began)
    return min(found)
