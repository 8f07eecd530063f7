"""Encoding short strings one by one, as an evaluation harness does."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from peers.child import STRINGS
from peers.contestants import Contestant
from peers.job import Job
from peers.rounds import play
from peers.table import number, seconds, table
from peers.text import Text

HEAD = ("what", "cold s", "warm s", "cold µs a string", "warm µs a string", "ids")


def measure(
    text: Text,
    vocabularies: Path,
    contestants: Sequence[Contestant],
    *,
    repeats: int,
    limit_s: float,
    report: Callable[[str], None],
) -> tuple[str, bool]:
    """A table and whether the ids of those that must agree do."""

    def job(contestant: Contestant, cores: int) -> Job:
        function, options = contestant.function, contestant.options
        return Job("strings", function, options, str(text.directory), str(vocabularies), cores, passes=20)

    series = play(contestants, job, cores=[1], repeats=repeats, limit_s=limit_s, report=report)
    done = [one for one in series if one.outcomes]
    digests = {one.contestant.name: set(one.values("digest")) for one in done if one.contestant.ids == "equal"}
    agree = len({digest for found in digests.values() for digest in found}) <= 1
    rows = []
    for one in done:
        cold, warm = one.cold(), one.warm()
        each = [number(statistics.median(values) / STRINGS * 1e6) for values in (cold, warm)]
        said = ("equal" if agree else "**differ**") if one.contestant.name in digests else ""
        rows.append([one.contestant.name, seconds(cold), seconds(warm), *each, said])
    left_out = "".join(f"- not measured: {one.contestant.name}: {one.problem}\n" for one in series if one.problem)
    caption = f"{STRINGS:,} strings of 20 to 200 characters, encoded one by one on one core.\n\n"
    return caption + table(HEAD, rows) + (f"\n{left_out}" if left_out else ""), agree
