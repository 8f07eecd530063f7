"""Encoding a corpus to an array of ids, cold and warm, and whether the ids are right."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers.contestants import REFERENCE, RIVAL, Contestant
from peers.job import Job
from peers.rounds import Series, play
from peers.table import number, seconds, table
from peers.text import Text

SPEED = ["ready s", "cold s", "cold MB/s", "warm s", "warm MB/s", "cold and warm to gigatoken's", "to one core"]
HEAD = ["what", "cores", "MB", *SPEED, "peak MiB", "bytes a token", "ids"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a corpus is encoded: how often, by how many cores, how much of it where a peer is slow."""

    text: Text
    vocabularies: Path
    cores: Sequence[int]
    repeats: int
    passes: int
    warm_megabytes: float
    slow_megabytes: float
    limit_s: float

    @property
    def copies(self) -> int:
        """How often a warm pass goes over the text, for it to take a time that can be measured."""
        return max(1, math.ceil(self.warm_megabytes / self.text.megabytes() - 0.01))

    def job(self, contestant: Contestant, cores: int) -> Job:
        """What a contestant has to do."""
        return Job(
            "encode",
            contestant.function,
            contestant.options,
            str(self.text.directory),
            str(self.vocabularies),
            cores,
            limit=self.slow_megabytes if contestant.slow else None,
            copies=1 if contestant.slow else self.copies,
            passes=min(self.passes, 2) if contestant.slow else self.passes,
            sample=self.slow_megabytes,
        )


def measure(
    plan: Plan, contestants: Sequence[Contestant], missing: dict[str, str], report: Callable[[str], None]
) -> tuple[str, bool]:
    """A table and whether all ids were right. `missing` says which vocabularies there are not, and why."""
    able = [contestant for contestant in contestants if contestant.vocabulary not in missing]
    series = play(able, plan.job, cores=plan.cores, repeats=plan.repeats, limit_s=plan.limit_s, report=report)
    for one in series:
        one.megabytes = plan.text.megabytes(plan.slow_megabytes if one.contestant.slow else None)
    done = [one for one in series if one.outcomes]
    verdicts = [verdict(one, done) for one in done]
    rows = [_row(one, said, done, plan) for one, (said, _) in zip(done, verdicts, strict=True)]
    reasons = {one.contestant.name: one.problem for one in series if one.problem}
    reasons |= {each.name: missing[each.vocabulary] for each in contestants if each.vocabulary in missing}
    left_out = "".join(f"- not measured: {name}: {reason}\n" for name, reason in reasons.items())
    return _caption(plan, done) + table(HEAD, rows) + (f"\n{left_out}" if left_out else ""), all(
        right for _, right in verdicts
    )


def verdict(one: Series, all_of_them: Sequence[Series]) -> tuple[str, bool]:
    """What is said about the ids of a contestant, and whether they are as they must be."""
    outcomes = [outcome.values for outcome in one.outcomes]
    same = [other for other in all_of_them if other.contestant == one.contestant]
    passes = {digest for other in same for outcome in other.outcomes for digest in outcome.values["digests"]}
    random = "dropout" in one.contestant.options
    if (len(passes) > 1 and not random) or (len(_digests(same)) > 1 and one.contestant.function == "paribus"):
        return "**differ from pass to pass**", False
    if not all(values.get("decodes", True) for values in outcomes):
        return "**do not decode to the text**", False
    if one.contestant.ids == "equal":
        reference = _digests(other for other in all_of_them if other.contestant.name == REFERENCE)
        equal = reference == _digests([one])
        return ("equal", True) if equal else ("**differ**" if reference else "nothing to compare with", not reference)
    if one.contestant.ids == "decode":
        return "random, decode to the text" if random else "decode to the text", True
    return "own vocabulary", True


def _digests(series: Iterable[Series]) -> set[str]:
    return {outcome.values["digest"] for one in series for outcome in one.outcomes}


def _row(one: Series, said: str, done: Sequence[Series], plan: Plan) -> list[str]:
    copies = plan.job(one.contestant, one.cores).copies
    cold, warm = one.cold(), one.warm(copies)
    tokens = statistics.median(one.values("tokens"))
    return [
        one.contestant.name,
        str(one.cores),
        number(one.megabytes),
        number(statistics.median(one.values("ready"))),
        seconds(cold),
        number(one.megabytes / statistics.median(cold)),
        seconds(warm),
        number(one.megabytes / statistics.median(warm)),
        _ratios(one, _find(done, RIVAL, one.cores), plan),
        _ratios(one, _find(done, one.contestant.name, 1), plan) if one.cores > 1 else "",
        number(statistics.median(one.values("peak"))),
        f"{plan.text.megabytes(plan.slow_megabytes) * 1e6 / tokens:.2f}",
        said,
    ]


def _ratios(one: Series, other: Series | None, plan: Plan) -> str:
    """How many times as fast as another, cold and warm."""
    if other is None:
        return ""
    mine, theirs = _speeds(one, plan), _speeds(other, plan)
    return f"{mine[0] / theirs[0]:.2f}, {mine[1] / theirs[1]:.2f}"


def _speeds(one: Series, plan: Plan) -> tuple[float, float]:
    copies = plan.job(one.contestant, one.cores).copies
    return one.megabytes / statistics.median(one.cold()), one.megabytes / statistics.median(one.warm(copies))


def _find(done: Sequence[Series], name: str, cores: int) -> Series | None:
    return next((one for one in done if one.contestant.name == name and one.cores == cores), None)


def _caption(plan: Plan, done: Sequence[Series]) -> str:
    text, copies = plan.text, plan.copies
    base = [value for one in done if not one.contestant.slow for value in one.values("base")]
    held = f" The texts alone take {statistics.median(base):.0f} MiB." if base else ""
    warm = f"{copies} copies of the texts a pass" if copies > 1 else "a pass over the same texts"
    return (
        f"{text.count():,} documents, {text.megabytes():.1f} MB. Cold: the first pass of a fresh process over the "
        f"texts. Warm: {warm}, the median of the third and later passes. Ready: importing, loading the vocabulary and "
        f"encoding one short string, not in the other times.{held}\n\n"
    )
