"""How many tokens a batch of what a model computes has, where `evaluation.batch_tokens` does not say."""

from collections.abc import Mapping
from types import MappingProxyType

SCORED: Mapping[str, int] = MappingProxyType({"cpu": 2_048, "cuda": 32_768})
"""By the kind of device."""
WRITTEN: Mapping[str, int] = MappingProxyType({"cpu": 16_384, "cuda": 32_768})
"""The same of texts, of which a forward pass computes one token each."""
