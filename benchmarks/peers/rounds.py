"""Repeated measurements, the contestants taking turns, so that a busy moment of the machine hits them alike."""

import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from peers.contestants import Contestant
from peers.job import Job, Outcome, run


@dataclass(slots=True)
class Series:
    """The outcomes of a contestant on a number of cores."""

    contestant: Contestant
    cores: int
    megabytes: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    problem: str | None = None

    def values(self, name: str) -> list[float]:
        """One measured value of each repeat."""
        return [outcome.values[name] for outcome in self.outcomes]

    def cold(self) -> list[float]:
        """Seconds of each first pass."""
        return [outcome.values["seconds"][0] for outcome in self.outcomes]

    def warm(self, copies: int = 1) -> list[float]:
        """Seconds of the later passes for one copy of the text: their median in each process.

        The second pass still fills what the first one left, so it counts only where there is no third.
        """
        passes = (outcome.values["seconds"] for outcome in self.outcomes)
        return [statistics.median(seconds[2:] or seconds[1:]) / copies for seconds in passes]


def play(
    contestants: Iterable[Contestant],
    job: Callable[[Contestant, int], Job],
    *,
    cores: Sequence[int],
    repeats: int,
    limit_s: float,
    report: Callable[[str], None],
) -> list[Series]:
    """`repeats` outcomes of each contestant on each number of cores; who fails once is not asked again.

    The order is drawn anew for every turn, since it matters who came before: one that used little memory lets a virtual
    machine give memory back, which the next one then waits for.
    """
    series = [Series(contestant, number) for contestant in contestants for number in cores]
    for turn in range(repeats):
        for one in random.Random(turn).sample(series, len(series)):
            if one.problem is None:
                report(f"{turn + 1}/{repeats} {one.contestant.name}, cores: {one.cores}")
                outcome = run(job(one.contestant, one.cores), limit_s)
                one.problem = outcome.problem
                one.outcomes += [outcome] if outcome.problem is None else []
    return series
