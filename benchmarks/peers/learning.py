"""Training a vocabulary: whole processes from start to file, and the training alone."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from peers.contestants import CHECKS, Contestant
from peers.job import Job, run
from peers.rounds import Series, play
from peers.table import number, seconds, table
from peers.text import Text

Merges = list[list[str]]
TIMES = ["process s", "process CPU s", "training s", "to the fastest peer's process"]
HEAD = ["what", "cores", *TIMES, "peak MiB", "merges"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is trained, how often and on how many cores."""

    text: Text
    vocab_size: int
    cores: Sequence[int]
    repeats: int
    limit_s: float

    def job(self, contestant: Contestant, cores: int) -> Job:
        """What a contestant has to do."""
        function, options = contestant.function, contestant.options
        text = str(self.text.directory)
        return Job("train", function, options, text, "", cores, vocab_size=self.vocab_size)


def measure(plan: Plan, contestants: Sequence[Contestant], report: Callable[[str], None]) -> tuple[str, bool]:
    """A table and whether the merges of those that must agree do."""
    series = play(contestants, plan.job, cores=plan.cores, repeats=plan.repeats, limit_s=plan.limit_s, report=report)
    done = [one for one in series if one.outcomes]
    merges = {one.contestant.name: one.outcomes[0].values["merges"] for one in done}
    for check in [CHECKS[name] for name in CHECKS if name in merges]:
        report(f"{check.name}, not measured")
        merges[check.name] = run(plan.job(check, plan.cores[-1]), plan.limit_s).values.get("merges", [])
    fastest = {cores: min(_peers(done, cores), default=None) for cores in plan.cores}
    verdicts = [verdict(one, merges) for one in done]
    rows = [_row(one, said, fastest[one.cores]) for one, (said, _) in zip(done, verdicts, strict=True)]
    left_out = "".join(f"- not measured: {one.contestant.name}: {one.problem}\n" for one in series if one.problem)
    caption = (
        f"{plan.vocab_size:,} tokens from {plan.text.megabytes():.1f} MB. Process: from the start of Python to its "
        "end, the vocabulary saved, kernels compiled before. Training: reading the text, training and saving.\n\n"
    )
    right = all(right for _, right in verdicts)
    return caption + table(HEAD, rows) + (f"\n{left_out}" if left_out else ""), right


def verdict(one: Series, merges: dict[str, Merges]) -> tuple[str, bool]:
    """What is said about the merges of a contestant, and whether they are as they must be."""
    name, values = one.contestant.name, one.outcomes[0].values
    if any(outcome.values["merges"] != values["merges"] for outcome in one.outcomes):
        return "**differ from run to run**", False
    if name in ("paribus BPE", "gigabpe"):
        return compared(values["merges"], merges, CHECKS[name].name)
    if name == "gigatoken":
        return compared(values["merges"], merges, "tokenizers")
    if name == "paribus Scaffold-BPE":
        said, right = compared(values["merges"], merges, "paribus BPE")
        return f"{said}, and {len(values['merges']) - len(merges.get('paribus BPE', [])):,} more", right
    tokens = set(values["tokens"]) or {left + right for left, right in values["merges"]}
    plain = {left + right for left, right in merges.get("paribus BPE", [])}
    if not tokens or not plain:
        return "nothing to compare with" if tokens else "other pre-tokens", True
    return f"other ties: {len(plain & tokens):,} of {len(plain):,} tokens those of paribus BPE", True


def compared(found: Merges, merges: dict[str, Merges], other: str) -> tuple[str, bool]:
    """Whether two lists of merges are equal as far as the shorter goes."""
    expected = merges.get(other)
    if not expected:
        return f"nothing to compare with ({other})", True
    common = min(len(expected), len(found))
    equal = next((place for place in range(common) if expected[place] != found[place]), common)
    said = f"the first {equal:,} of {common:,} those of {other}" if equal < common else f"{equal:,}, those of {other}"
    return (said, True) if equal == common else (f"**{said}**", False)


def _peers(done: Sequence[Series], cores: int) -> list[float]:
    """Median seconds of each peer's process."""
    peers = [one for one in done if one.cores == cores and one.contestant.function != "paribus"]
    return [statistics.median(outcome.wall for outcome in one.outcomes) for one in peers]


def _row(one: Series, said: str, fastest: float | None) -> list[str]:
    walls = [outcome.wall for outcome in one.outcomes]
    return [
        one.contestant.name,
        str(one.cores),
        seconds(walls),
        number(statistics.median(outcome.cpu for outcome in one.outcomes)),
        seconds(one.values("seconds")),
        f"{statistics.median(walls) / fastest:.2f}" if fastest else "",
        number(statistics.median(one.values("peak"))),
        said,
    ]
