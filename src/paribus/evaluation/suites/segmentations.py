"""Corpora segmented by hand, against which a tokenizer's tokens are scored as words."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from paribus.evaluation.suites.files import DataFile

SEGMENTATIONS: Mapping[str, DataFile] = MappingProxyType(
    {name: DataFile(f"task {name}", name, ("test.seg.txt",)) for name in ("pku", "msr")}
)
"""By task: lines of words separated by spaces, as the SIGHAN bakeoffs have them."""


def segmented(tasks: Sequence[str]) -> tuple[str, ...]:
    """Those of the tasks whose words tokens are compared with."""
    return tuple(name for name in tasks if name in SEGMENTATIONS)
