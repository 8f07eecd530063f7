"""The micro-batch that a training uses, kept where it goes on from: how sums are rounded depends on it."""

import json
from dataclasses import dataclass
from pathlib import Path

from paribus.store.atomic import write_json

FILE = "micro_batch.json"


@dataclass(frozen=True)
class MicroBatch:
    """What a training found of its micro-batch.

    All processes of a training keep it in one file; those that run out of memory in one step write the same.
    """

    directory: Path
    given: int
    """As `training.micro_batch` is configured; what was found of another is not taken."""

    @property
    def used(self) -> int | None:
        """What is used; None where nothing was found yet."""
        return self._read().get("used")

    @property
    def halvings(self) -> int:
        """How often it was halved because memory ran out."""
        return self._read().get("halvings", 0)

    def keep(self, used: int) -> None:
        """Keep what was found to fit."""
        self._write(used, self.halvings)

    def halve(self, used: int, share: int) -> int | None:
        """Keep the largest divisor of `share`, the contexts of a process, of at most half of `used`; None below 1."""
        smaller = next((size for size in range(used // 2, 0, -1) if share % size == 0), None)
        if smaller is not None:
            self._write(smaller, self.halvings + 1)
        return smaller

    def _read(self) -> dict[str, int]:
        path = self.directory / FILE
        found: dict[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return found if found.get("given") == self.given else {}

    def _write(self, used: int, halvings: int) -> None:
        write_json(self.directory / FILE, {"given": self.given, "used": used, "halvings": halvings})
