"""Values of group `plan` that cannot work together."""

from collections.abc import Iterator

from paribus.config.groups.plan import PlanConfig
from paribus.config.validate import did_you_mean
from paribus.training.fit.peaks import known_devices, peak_flops


def impossible_plan(plan: PlanConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right): a stated speed needs a peak, a probe measures this machine."""
    if plan.device is not None and plan.peak_tflops is None and peak_flops(plan.device) is None:
        yield "plan.device", _unknown(plan.device)
    if plan.throughput == "stated" and plan.device is None and plan.peak_tflops is None:
        yield "plan.throughput", "stated needs plan.device, such as h800, or plan.peak_tflops"
    if plan.throughput == "probe" and (plan.device or plan.peak_tflops):
        other = "plan.device" if plan.device else "plan.peak_tflops"
        yield (
            "plan.throughput",
            f"probe measures this machine, which {other} is not about; leave that out, or take auto",
        )


def _unknown(device: str) -> str:
    known = known_devices()
    hint = did_you_mean(device.lower(), known)
    return f"the peak of {device!r} is unknown; {hint}known: {', '.join(known)}; or state it with plan.peak_tflops"
