"""The named sizes of the group `model`, and what papers say of theirs."""

from pathlib import Path
from typing import NamedTuple

import yaml  # type: ignore[import-untyped]
from pydantic import TypeAdapter

from paribus.config.groups.model import ModelConfig


class Stated(NamedTuple):
    """Parameters of a size as a paper states them."""

    name: str
    """The file of the group."""
    source: str
    vocab_size: int
    text: str
    """As the paper prints it."""
    parameters: int


STATED = (
    Stated("468m", "Scaffold-BPE, LBPE", 32_000, "468M", 468_000_000),
    Stated("1.2b", "Scaffold-BPE, LBPE", 32_000, "1.2B", 1_200_000_000),
    Stated("6.7b", "Scaffold-BPE, LBPE", 32_000, "6.7B", 6_700_000_000),
    Stated("in_context_0.3b", "In-Context Pretraining", 32_000, "0.3B", 300_000_000),
    Stated("in_context_0.7b", "In-Context Pretraining", 32_000, "0.7B", 700_000_000),
    Stated("in_context_1.5b", "In-Context Pretraining", 32_000, "1.5B", 1_500_000_000),
    Stated("in_context_7b", "In-Context Pretraining", 32_000, "7B", 7_000_000_000),
    Stated("pythia_410m", "Pythia", 50_304, "405,334,016", 405_334_016),
    Stated("pythia_1b", "Pythia", 50_304, "1,011,781,632", 1_011_781_632),
    Stated("wmt_base", "Vaswani et al. 2017, table 3", 37_000, "65M", 65_000_000),
    Stated("wmt_big", "Vaswani et al. 2017, table 3", 37_000, "213M", 213_000_000),
)
"""Vocabulary sizes are about what the papers say; In-Context Pretraining's is LLaMA's."""


def named_sizes(directory: Path) -> dict[str, ModelConfig]:
    """Name -> model of every file in the group's `directory`; pydantic's ValidationError for one that is none."""
    adapter: TypeAdapter[ModelConfig] = TypeAdapter(ModelConfig)
    paths = sorted(directory.glob("*.yaml"))
    return {path.stem: adapter.validate_python(yaml.safe_load(path.read_text(encoding="utf-8"))) for path in paths}
