"""The bill of a plan in words: what is still to be done, in device-hours, and how that was reckoned."""

from collections.abc import Iterator

from paribus.config.units import format_hours, format_size
from paribus.planning.encoded import Encoded
from paribus.planning.hours import devices_of_training
from paribus.planning.plan import Plan
from paribus.planning.throughput import NEVER_PROBED, NOT_PROBED

HOW_TO_PROBE = "plan.throughput=probe measures each model shape here, in about {seconds:.0f} s; for another device: "
HOW_TO_STATE = "plan.device=h800 plan.utilisation=0.4"
SECONDS_TO_IMPORT = 6


def bill(plan: Plan) -> Iterator[str]:
    """A line each: training and what its speed is taken from, wall time, room for encoded text, the limit."""
    if plan.until is not None:
        yield f"until={plan.until}: what follows that stage, or does not lead to it, is neither made nor counted"
    if plan.until is None or any(run.trains for run in (*plan.firsts, *plan.runs)):
        yield from _training(plan)
    yield from _encoded(plan.encoded)
    if plan.config.max_device_hours is not None and plan.device_hours is not None:
        yield f"plan.max_device_hours: {plan.device_hours} of {plan.config.max_device_hours:g}"


def _training(plan: Plan) -> Iterator[str]:
    trainings = plan.trainings
    if not trainings:
        yield "nothing is left to train"
        return
    hours = plan.device_hours
    known = f"{hours} device-hours" if hours else "device-hours are not known"
    noun = "training" if len(trainings) == 1 else "trainings"
    size = format_size(plan.disk_bytes)
    yield f"still to train: {len(trainings)} {noun}, {plan.flops:.3g} FLOPs, {known}; {size} of checkpoints"
    yield from _wall(plan)
    for source in dict.fromkeys(run.throughput.source for run in trainings):
        yield f"  speed: {source}"
    sources = [run.throughput.source for run in trainings]
    if any(source.endswith(NOT_PROBED) for source in sources):
        yield f"  {HOW_TO_PROBE.format(seconds=plan.config.probe_seconds + SECONDS_TO_IMPORT)}{HOW_TO_STATE}"
    elif any(source.endswith(NEVER_PROBED) for source in sources):
        yield f"  a stated speed: {HOW_TO_STATE}"


def _wall(plan: Plan) -> Iterator[str]:
    """Only where several devices are at hand: on one, it is the device-hours."""
    if plan.wall_hours is None or plan.devices == 1:
        return
    most = max(devices_of_training(run.global_batch, plan.devices) for run in plan.trainings)
    yield (
        f"  {format_hours(plan.wall_hours)} hours of wall time on {plan.devices} devices, of which a training uses "
        f"{most}: trainings at once where devices are left, data parallelism at no further loss"
    )


def _encoded(encoded: Encoded) -> Iterator[str]:
    """Room on the disk for what is to be encoded; nothing where neither a corpus nor draws say how much."""
    drawn = f", which {encoded.draws} draws of BPE-dropout take {encoded.draws} times" if encoded.draws > 1 else ""
    sizes = {"tokens": encoded.tokens, "contexts": encoded.contexts}
    if told := [f"{format_size(size)} of {name}" for name, size in sizes.items() if size]:
        yield f"still to encode: ~{' and '.join(told)}{drawn}"
    if encoded.unknown and drawn:
        yield f"still to encode: room for tokens and contexts is not known before the corpus is there{drawn}"
