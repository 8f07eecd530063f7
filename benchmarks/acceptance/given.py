"""What every step is told, and what it answers."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
"""Of the repository."""


@dataclass(frozen=True)
class Given:
    """Where a step computes and keeps its files."""

    device: str
    """`cpu` or `cuda`."""
    tiny: bool
    """Whether sizes are those of a rehearsal: everything is entered, and no speed means anything."""
    directory: str
    """Of the step alone, empty at first; those of a whole command are beside it."""
    until: float
    """When the step is ended, by the clock `time.monotonic`; what `steps.run` is given is when the whole call is."""
    of: str = ""
    """What of the module's is measured."""

    @property
    def torch_device(self) -> torch.device:
        """The first GPU, or the CPU."""
        return torch.device("cuda", 0) if self.device == "cuda" else torch.device("cpu")

    @property
    def work(self) -> Path:
        """The step's directory."""
        return Path(self.directory)

    def write(self, path: Path) -> None:
        """For the process of a step to `read`."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Given":
        """What `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


@dataclass
class Answer:
    """Numbers by name, and sentences on what is not as it must be, and on what there was no time for."""

    numbers: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        """Say `otherwise` unless it `holds`."""
        if not holds:
            self.wrong.append(otherwise)
