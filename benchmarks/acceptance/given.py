"""What every step is told, and what it answers."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
"""Of the repository."""


@dataclass(frozen=True)
class Given:
    """Where a step computes and keeps its files."""

    device: str
    """`cuda`, or `cpu`: a rehearsal at tiny sizes, in which everything is entered and no speed means anything."""
    directory: str
    """Of the step alone, empty at first."""
    of: str
    """What is measured, where a step is of several things."""

    @property
    def tiny(self) -> bool:
        """Whether this is a rehearsal."""
        return self.device == "cpu"

    @property
    def torch_device(self) -> torch.device:
        """The first GPU, or the CPU."""
        return torch.device("cpu") if self.tiny else torch.device("cuda", 0)

    @property
    def work(self) -> Path:
        """The step's directory."""
        return Path(self.directory)


@dataclass
class Answer:
    """Numbers by name, and sentences on what is not as it must be."""

    numbers: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        """Say `otherwise` unless it `holds`."""
        if not holds:
            self.wrong.append(otherwise)
