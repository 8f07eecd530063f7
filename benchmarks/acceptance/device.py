"""What there is, and how fast a matrix product and a copy are on it."""

import platform

import torch
from machine import version_of
from training_loops import fastest, product_flops

from acceptance.given import Answer, Given
from paribus.training.fit import missing_for_compilation
from paribus.training.metrics import peak_flops
from paribus.training.parallel import device_name

PACKAGES = ("torch", "triton", "transformers", "accelerate", "lm-eval", "hydra-core", "mlflow", "numpy", "faiss-cpu")


def environment(given: Given) -> Answer:
    """Versions and peaks."""
    device = given.torch_device
    answer = Answer({"device": device_name(device), "python": platform.python_version()})
    answer.numbers["compiler"] = missing_for_compilation(gpu=True) or "there"
    answer.numbers["packages"] = {package: version_of(package) or "not there" for package in PACKAGES}
    if not given.tiny:
        answer.numbers |= {"cuda": torch.version.cuda, "memory GiB": torch.cuda.mem_get_info(device)[1] / 2**30}
        answer.expect(torch.cuda.is_bf16_supported(including_emulation=False), "the GPU has no bfloat16")
    rate, stated = product_flops(device), peak_flops(device_name(device))
    answer.numbers |= {"TFLOP/s": rate / 1e12} | ({"of the stated peak": rate / stated} if stated else {})
    source = torch.zeros(2**20 if given.tiny else 2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = fastest(lambda: target.copy_(source), device)
    answer.numbers["copy GB/s"] = 2 * source.nbytes / seconds / 1e9
    return answer
