"""What devices can do at most, for model-FLOPs utilisation: dense bfloat16 matrix products, as their makers state it.

It is the same peak whatever precision a run computes in, so that utilisations can be compared; a run in float32 simply
uses little of it.
"""

import re

PEAK_FLOPS = (
    (("MIG",), None),  # a part of a device has a part of its peak
    (("B200",), 2_250e12),
    (("GB200",), 2_500e12),
    (("GH200",), 989e12),
    (("H200", "NVL"), 835e12),
    (("H200",), 989e12),
    (("H100", "PCIe"), 756e12),
    (("H100", "NVL"), 835e12),
    (("H100",), 989e12),
    (("H800",), 989e12),
    (("H20",), 148e12),
    (("A100",), 312e12),
    (("A800",), 312e12),
    (("A40",), 149.7e12),
    (("A10",), 125e12),
    (("L40S",), 362e12),
    (("L40",), 181e12),
    (("L4",), 121e12),
    (("MI300X",), 1_307e12),
)
"""Words of a device's name, and its FLOP/s; the first line of which a name has all words counts."""


def peak_flops(device: str) -> float | None:
    """Peak FLOP/s of a device by its name, such as `NVIDIA H100 80GB HBM3` or `h100`; None for an unknown one."""
    words = set(re.split(r"[\s_-]+", device.upper()))
    return next((peak for named, peak in PEAK_FLOPS if words.issuperset(map(str.upper, named))), None)


def known_devices() -> list[str]:
    """Names of the devices with a known peak, as people write them: `h100_pcie`."""
    return ["_".join(named).lower() for named, peak in PEAK_FLOPS if peak is not None]
