"""What the runs of a command are called: in its own lists, and by themselves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from paribus.config.arguments import override_key, override_value
from paribus.config.identity import chosen, digest
from paribus.config.schema import RunConfig
from paribus.pipeline.prepared_run import ABSENT, PreparedRun, factor_labels

_ALWAYS_NAMED = ("tokenizer", "encoder", "ordering")
_LONGEST_VALUE = 40
_OF_A_DIGEST = 6


def labels(runs: Sequence[PreparedRun]) -> list[str]:
    """A short name for each run: the values of the overrides in which the runs differ, or its own name."""
    common = set.intersection(*(set(run.job.overrides) for run in runs))
    differing = [[text for text in run.job.overrides if text not in common] for run in runs]
    # Lists cut a name at its end, and arms differ in more than a seed.
    differing = [sorted(texts, key=lambda text: text.startswith("seed=")) for texts in differing]
    named = [" ".join(map(_short, texts)) for texts in differing]
    return [name or own for name, own in zip(named, run_names(runs), strict=True)]


def run_name(config: RunConfig) -> str:
    """A run by itself: whether it continues another, what kinds it has of what other sweeps compare, its seed."""
    return "-".join((*_kinds(config).values(), f"seed{config.seed}"))


def run_names(runs: Sequence[PreparedRun]) -> list[str]:
    """As `run_name`, and what the sweep compares: a group as it was chosen, a field with its name.

    A group that every name has is called by its kind, and as it was chosen where runs of one kind differ in it; so is
    what a word stands for that is no field, an arm.
    """
    labelled = [factor_labels(run, run.factors) for run in runs]
    kinds = [_kinds(run.job.config) for run in runs]
    varied = [factor for factor in runs[0].factors if not _told(factor, runs, kinds, labelled)]
    short = {factor: _shortened([of_run[factor] for of_run in labelled]) for factor in varied}
    names = []
    for run, kind, label in zip(runs, kinds, labelled, strict=True):
        texts = {factor: short[factor][label[factor]] for factor in varied if label[factor] != ABSENT}
        parts = {group: texts.pop(group, text) for group, text in kind.items()}
        names.append("-".join((*parts.values(), *_compared(texts), f"seed{run.job.config.seed}")))
    return names


def _kinds(config: RunConfig) -> dict[str, str]:
    """Group -> its kind, of the groups that every name has."""
    start = {} if config.start.kind == "scratch" else {"": "continued"}
    return start | {group: chosen(config, group) or "" for group in _ALWAYS_NAMED}


def _told(
    factor: str,
    runs: Sequence[PreparedRun],
    kinds: Sequence[Mapping[str, str]],
    labelled: Sequence[Mapping[str, str]],
) -> bool:
    """Whether the kinds of a run say already what it has at a factor."""
    if factor not in _ALWAYS_NAMED and any(chosen(run.job.config, factor) is not None for run in runs):
        return False
    found = {(*kind.values(), label[factor]) for kind, label in zip(kinds, labelled, strict=True)}
    return len(found) == len({tuple(kind.values()) for kind in kinds})


def _compared(texts: Mapping[str, str]) -> Iterator[str]:
    for factor, text in texts.items():
        yield f"{factor.rpartition('.')[2]}={text}" if "." in factor else text


def _shortened(values: Sequence[str]) -> dict[str, str]:
    """Value -> what stands for it in a name: of a long one its end, which of paths tells most, and where that is the
    end of another too, the start of its digest.
    """
    ends = {value: value if len(value) <= _LONGEST_VALUE else f"…{value[1 - _LONGEST_VALUE :]}" for value in values}
    met = Counter(ends.values())
    return {value: end if met[end] == 1 else f"{end}…{digest(value)[:_OF_A_DIGEST]}" for value, end in ends.items()}


def _short(override: str) -> str:
    """A group choice by its value alone, a field with its path; of a text in quotes what is in them."""
    key, value = override_key(override), override_value(override)
    return f"{key}={value}" if "." in key or key == "seed" else value
