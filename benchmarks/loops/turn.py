"""Taking turns: processes hand on the right to compute, so that each meets the machine in the state of the others."""

import os
from pathlib import Path

SIGN = b"\0"


class Turn:
    """One process's place in the circle: it waits at the pipe `mine` and hands on to the pipe `following`."""

    def __init__(self, mine: Path, following: Path) -> None:
        # Open for both, so that neither opening waits and no writer is ever without a reader.
        self._mine, self._following = os.open(mine, os.O_RDWR), os.open(following, os.O_RDWR)

    def close(self) -> None:
        """Close both pipes."""
        os.close(self._mine)
        os.close(self._following)

    def wait(self) -> None:
        """Return when it is this process's turn."""
        os.read(self._mine, 1)

    def hand_on(self) -> None:
        """It is the next one's turn."""
        os.write(self._following, SIGN)


def circle(directory: Path, size: int) -> list[Path]:
    """Pipes of that many processes; it is the first one's turn once it is there."""
    pipes = [directory / f"turn_{number}" for number in range(size)]
    for pipe in pipes:
        os.mkfifo(pipe)
    return pipes
