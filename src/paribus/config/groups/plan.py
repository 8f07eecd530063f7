"""Group `plan`: from FLOPs to hours, and how many a command may take."""

from typing import Literal

from paribus.config.declare import execution, group
from paribus.config.groups.types import Limit, Positive, PositiveFloat, Share


@group
class PlanConfig:
    """How `paribus plan` reckons the hours of training, and what it may cost."""

    throughput: Literal["auto", "probe", "stated"] = execution(
        "auto",
        doc="Where the speed of training comes from. probe: each model shape is trained on this machine for "
        "plan.probe_seconds, once, and remembered below the output root; stated: plan.utilisation of a device's peak; "
        "auto: stated where plan.device or plan.peak_tflops is set, else what was probed before, and a probe "
        "only where plan.max_device_hours must be judged.",
    )
    probe_seconds: PositiveFloat = execution(10.0, doc="Seconds of training steps that a probe measures, at most.")
    device: str | None = execution(
        None,
        doc="Device to reckon for, by a name with a known peak, such as h800 or a100; null is this machine's.",
    )
    peak_tflops: PositiveFloat | None = execution(
        None, doc="TFLOP/s that the device can do at most; null is the known peak of plan.device (dense bfloat16)."
    )
    utilisation: Share = execution(
        0.4, doc="Share of the peak that training achieves (model FLOPs utilisation), where the speed is stated."
    )
    devices: Positive | None = execution(
        None, doc="Devices at hand, for hours of wall time; null is training.processes x training.nodes."
    )
    max_device_hours: Limit = execution(
        None, doc="Most device-hours: plan and run refuse a command whose missing trainings take more."
    )
