"""Rule of equality: compared runs may differ in the declared factors and the seed, and in nothing else.

It reads flat fields (path -> canonical JSON), so it judges configurations before anything runs, and records, alike.
Nothing heavy is imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.config.fields import with_chosen
from paribus.config.identity import canonical, leaves
from paribus.errors import ConfigurationError

Fields = Mapping[str, str]
"""Path of a setting -> its value as canonical JSON."""
SEED = "seed"
ENVIRONMENT = "environment."
CODE_VERSION, DIGEST = ENVIRONMENT + "code_version.", ENVIRONMENT + "digest."
PACKAGES = ENVIRONMENT + "packages."
COMPUTED_ON = ENVIRONMENT + "computed_on"
FINGERPRINT = "fingerprints."
SHARES, SCORED_SHARES = "training.checkpoints", "evaluation.last_checkpoints"
AVERAGED_SHARES = "evaluation.average_checkpoints"
MISSING = "nothing"
_NAMED = 3


@dataclass(frozen=True)
class Difference:
    """Setting in which runs differ: its path, and each value with the names of the runs that have it."""

    path: str
    values: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        return f"{self.path}: " + "; ".join(f"{value} in {_names(runs)}" for value, runs in self.values)


class FairnessError(ConfigurationError):
    """Runs differ in more than the declared factors and the seed; `differences` lists all of it."""

    def __init__(self, message: str, differences: Sequence[Difference], remedy: str = "") -> None:
        self.differences = tuple(differences)
        lines = [message, *(f"  {difference}" for difference in differences), remedy]
        super().__init__("\n".join(line for line in lines if line))


def unequal(entries: Iterable[tuple[str, str, str]]) -> list[Difference]:
    """Differences among (path, value, name of the run that has it), by path."""
    values: dict[str, dict[str, list[str]]] = {}
    for path, value, name in entries:
        values.setdefault(path, {}).setdefault(value, []).append(name)
    return [
        Difference(path, tuple((value, tuple(names)) for value, names in by_value.items()))
        for path, by_value in sorted(values.items())
        if len(by_value) > 1
    ]


def flatten(config: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a nested configuration; lists are single values, as they are compared."""
    return {path: canonical(value) for path, value in leaves(config)}


def differing(runs: Sequence[tuple[str, Fields]], factors: Sequence[str]) -> list[Difference]:
    """Everything in which (name, fields) of runs differ outside the declared factors and the seed.

    A factor such as `tokenizer` covers every field below it, `tokenizer.vocab_size` only itself, `corpus` also the
    digest of the corpus and the fingerprint of its files. A field that some runs lack is a difference, except for what
    only runs have that need a stage or have its record: its code version, packages and fingerprint, and what a training
    was computed on. A package that the record of such a stage lacks is a difference: it may have had a part.
    """
    paths = {path for _, fields in runs[1:] for path, _ in runs[0][1].items() ^ fields.items()}
    allowed = covering([fields for _, fields in runs], factors) if paths else []
    return unequal(
        (path, fields.get(path, MISSING), name)
        for path in paths
        if not covered(path, allowed)
        for name, fields in runs
        if path in fields or not _of_an_unneeded_stage(path, fields)
    )


def scored_at_other_shares(runs: Sequence[tuple[str, Fields]]) -> list[Difference]:
    """Differences of (name, fields) of runs in the shares of their trainings at which they are scored.

    No factor excuses that: a mean of scores or weights over the last shares of a budget is another number where these
    are longer. The last checkpoint alone is at the end of a training, however many shares that has.
    """
    several = any(fields.get(path, "1") != "1" for _, fields in runs for path in (SCORED_SHARES, AVERAGED_SHARES))
    paths = (SHARES, SCORED_SHARES) if several else ()
    return [difference for difference in differing(runs, ()) if difference.path in paths]


def covering(runs: Sequence[Fields], factors: Sequence[str]) -> list[str]:
    """The paths that may differ, with those below them: the factors, the seed, and what stands for factors.

    A factor that no run has among its fields only says where files are (`embedder.path`): the fingerprint and the
    digest of its group stand for it. An arm stands for the groups that it chooses in.
    """
    factors = with_chosen(factors)
    paths = {path for fields in runs for path in fields}
    unseen = [factor for factor in factors if not any(_within(path, factor) for path in paths)]
    groups = [*factors, *(factor.split(".")[0] for factor in unseen)]
    return [SEED, *factors, *(kind + group for kind in (DIGEST, FINGERPRINT) for group in groups)]


def covered(path: str, allowed: Sequence[str]) -> bool:
    """True if a path is one of those that may differ, or below one."""
    return any(_within(path, above) for above in allowed)


def _within(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}.")


def _of_an_unneeded_stage(path: str, fields: Fields) -> bool:
    """True if a run with these fields has no part in what the path, which it lacks, describes."""
    if path.startswith(CODE_VERSION):
        return True
    if path == COMPUTED_ON:
        path = PACKAGES + "training.torch"
    group = ".".join(path.split(".")[: 3 if path.startswith(PACKAGES) else 2])
    return path.startswith((PACKAGES, FINGERPRINT)) and not any(_within(other, group) for other in fields)


def _names(runs: Sequence[str]) -> str:
    more = len(runs) - _NAMED
    return ", ".join(runs[:_NAMED]) + (f" and {more} more" if more > 0 else "")
