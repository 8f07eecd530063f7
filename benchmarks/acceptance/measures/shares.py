"""Where the time of a step goes, by PyTorch's profiler."""

from collections import Counter

from loops.shapes import CPU, GPU, configuration
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from acceptance.given import Answer, Given
from acceptance.stepping import batches, stepper, synchronize

KINDS = {
    "matrix products": ("gemm", "cutlass", "nvjet", "::mm", "addmm", "matmul", "linear"),
    "attention": ("flash", "fmha", "attention", "sdpa", "cudnn_generated"),
    "optimizer": ("adam", "foreach", "multi_tensor"),
    "norms, positions, activations, losses (compiled)": ("triton",),
    "copies and fills": ("memcpy", "memset", "copy", "fill", "cat"),
}
STEPS = 3
LARGEST, NAME = 25, 90
"""Kernels that are named, and letters of a name."""


def measure(given: Given) -> Answer:
    """Share of the device's time by kind, and of the whole time in which the device was busy."""
    shape = CPU["demo"] if given.tiny else GPU["468m"]
    rows = 2 if given.tiny else 32
    config = configuration(shape, 10, given.device, f"training.micro_batch={rows}", f"training.global_batch={2 * rows}")
    stepped = stepper(config.model, shape.vocab_size, config.training, given.torch_device)
    for batch in batches(2 * rows, shape.context_length, shape.vocab_size, 3):
        stepped.step(batch, 1e-4)
    activity = ProfilerActivity.CUDA if given.device == "cuda" else ProfilerActivity.CPU
    with profile(activities=list({ProfilerActivity.CPU, activity})) as profiled:
        for batch in batches(2 * rows, shape.context_length, shape.vocab_size, STEPS):
            stepped.step(batch, 1e-4)
        synchronize(given.torch_device)
    events: Counter[str] = Counter()
    for event in profiled.key_averages():
        # An annotation of the host spans kernels that are there themselves.
        if given.device == "cuda" and (event.device_type != DeviceType.CUDA or event.is_user_annotation):
            continue
        events[event.key] += event.self_device_time_total if given.device == "cuda" else event.self_cpu_time_total
    spent: Counter[str] = Counter()
    for name, time in events.items():
        spent[_kind(name)] += time
    total = sum(spent.values())
    answer = Answer({kind: time / total for kind, time in spent.most_common() if time})
    answer.numbers["ms a step"] = total / STEPS / 1e3
    answer.numbers["largest, ms a step"] = {
        name[:NAME].replace("|", "/"): time / STEPS / 1e3 for name, time in events.most_common(LARGEST)
    }
    answer.expect(total > 0, "the profiler saw nothing")
    return answer


def _kind(name: str) -> str:
    return next((kind for kind, parts in KINDS.items() if any(part in name.lower() for part in parts)), "other")
