"""Memory of the GPU that a process trains on. A CPU's is not looked at: free memory must not decide how sums round."""

import torch

from paribus.modeling.device import free_gpu_bytes


def available_bytes(device: torch.device) -> int | None:
    """Free bytes of a GPU; None for a CPU, which takes the configured micro-batch."""
    return free_gpu_bytes(device) if device.type == "cuda" else None


def gpu_bytes(device: torch.device) -> int | None:
    """All memory of a GPU; None for a CPU."""
    return int(torch.cuda.mem_get_info(device)[1]) if device.type == "cuda" else None


def peak_bytes(device: torch.device) -> int:
    """The most bytes of tensors that this process had at once on a GPU; 0 on a CPU, where nobody counts them."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0


def forget_peak(device: torch.device) -> None:
    """Let `peak_bytes` count from here on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
