"""The micro-batch that a training uses, kept where it goes on from: how sums are rounded depends on it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from paribus.config.groups.training import TrainingConfig
from paribus.store.files import write_json

FILE = "micro_batch.json"


@dataclass(frozen=True)
class MicroBatch:
    """What a training found of its micro-batch.

    All processes of a training keep it in one file; those that run out of memory in one step write the same.
    """

    directory: Path
    given: int
    """As `training.micro_batch` is configured; what was found of another is not taken."""
    share: int
    """Contexts of a global batch that each process has."""
    recomputes: bool = False
    """As `training.activation_checkpointing`, without which far more memory is taken."""

    @classmethod
    def of(cls, directory: Path, training: TrainingConfig, processes: int) -> Self:
        """That of a training which works in `directory`, in so many processes."""
        share = max(1, training.global_batch // processes)
        return cls(directory, training.micro_batch, share, training.activation_checkpointing)

    @property
    def used(self) -> int | None:
        """What is used; None where nothing was found yet, or of a smaller share no less than all of it."""
        found = self._read()
        if not found or found["used"] == found.get("share", self.share) < self.share:
            return None
        return min(int(found["used"]), self.share)

    @property
    def halvings(self) -> int:
        """How often it was halved because memory ran out."""
        found: int = self._read().get("halvings", 0)
        return found

    @property
    def tried_on(self) -> int | None:
        """Bytes of the GPU whose memory decided what is used, by trial or by running out.

        None for a prediction, where nothing is used yet, and where activations were kept then and are recomputed now or
        the other way round.
        """
        found = self._read()
        return found.get("tried_on") if found.get("recomputes") == self.recomputes and self.used else None

    def keep(self, used: int, tried_on: int | None = None) -> None:
        """Keep what was found to fit, by trial on a GPU of so many bytes if that is given.

        What is less because the share is smaller now tells nothing of memory: with the former share it is as it was.
        """
        found = self._read()
        if used != self.used:
            self._write(used, self.share, self.halvings, tried_on)
        elif used == found["used"]:
            self._write(used, found.get("share", self.share), self.halvings, tried_on)

    def halve(self, used: int, share: int, tried_on: int | None = None) -> int | None:
        """Keep the largest divisor of `share`, the contexts of a process, of at most half of `used`; None below 1.

        `tried_on` are the bytes of the GPU that had too little memory for more.
        """
        smaller = next((size for size in range(used // 2, 0, -1) if share % size == 0), None)
        if smaller is not None:
            self._write(smaller, share, self.halvings + 1, tried_on)
        return smaller

    def _read(self) -> dict[str, Any]:
        path = self.directory / FILE
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return found if found.get("given") == self.given else {}

    def _write(self, used: int, share: int, halvings: int, tried_on: int | None) -> None:
        kept = {"given": self.given, "used": used, "share": share, "halvings": halvings}
        write_json(self.directory / FILE, kept | {"tried_on": tried_on, "recomputes": self.recomputes})
