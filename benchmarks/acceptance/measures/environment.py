"""What there is, and how fast a matrix product and a copy are on it."""

import platform
import shutil
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import torch

from acceptance.given import Answer, Given
from acceptance.stepping import synchronize
from paribus.training.fit import missing_for_compilation
from paribus.training.metrics import peak_flops

PACKAGES = ("torch", "triton", "transformers", "accelerate", "lm-eval", "hydra-core", "mlflow", "numpy", "faiss-cpu")
BEST_OF = 10


def measure(given: Given) -> Answer:
    """Versions and peaks."""
    device = given.torch_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    answer = Answer(
        {"device": name, "python": platform.python_version(), "compiler": missing_for_compilation(gpu=True) or "there"}
    )
    answer.numbers["packages"] = {package: _version(package) for package in PACKAGES}
    if device.type == "cuda":
        answer.numbers |= {"cuda": torch.version.cuda, "memory GiB": torch.cuda.mem_get_info(device)[1] / 2**30}
        answer.expect(torch.cuda.is_bf16_supported(including_emulation=False), "the GPU has no bfloat16")
    answer.numbers |= _product(given, device) | _copy(given, device)
    answer.numbers["srun"] = shutil.which("srun") or "not there"
    return answer


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not there"


def _product(given: Given, device: torch.device) -> dict[str, float]:
    size = 256 if given.tiny else 8192
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    rate = 2 * size**3 / _best(lambda: left @ right, device)
    stated = peak_flops(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
    return {"bf16 TFLOP/s": rate / 1e12} | ({"of the stated peak": rate / stated} if stated else {})


def _copy(given: Given, device: torch.device) -> dict[str, float]:
    source = torch.zeros(2**20 if given.tiny else 2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return {"copy GB/s": 2 * source.nbytes / _best(lambda: target.copy_(source), device) / 1e9}


def _best(computed: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of ten."""
    found = []
    for _ in range(BEST_OF):
        synchronize(device)
        began = time.perf_counter()
        computed()
        synchronize(device)
        found.append(time.perf_counter() - began)
    return min(found)
