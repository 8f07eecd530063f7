"""What somebody means by a short name: runs, arms and sweeps of an output root by identifier, its start, or name.

An arm is the runs of a sweep that differ in nothing but the seed. Of the ways in which a text may name something the
first that finds anything counts: the whole identifier, the whole name, the start of an identifier, the start of a name.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paribus.config.arguments import Command, override_key
from paribus.config.flags import CONFIG_DIR
from paribus.config.names import proper_run_id
from paribus.errors import ConfigurationError
from paribus.pipeline.record.run_record import read_run_record
from paribus.pipeline.record.sweep_record import SWEEP_RECORD, SweepRecord, SweptRun, command_of, read_sweeps
from paribus.store.file_names import RUN_RECORD

LAST = "last"
LONGEST = 60
"""Characters of a name that an error repeats."""
SHOWN = 12
"""Candidates that an error lists."""
_REFERENCE = re.compile(
    r"[^~=-][^=]*|[^-=\s][^=\s]*\s[^=]*=.*|seed=\d+\s.+|[^-~=\s][^=\s]*-[^=\s]*=\S*-seed\d+"
    r"|[^-+~=\s][^=\s]*=[^\s'\"{\[(,]+\s[^=\s]+=.*",
    re.DOTALL,
)
_SEED = re.compile(r"^seed=?\d+(?:[- ]|$)|[- ]seed=?\d+(?=[- ]|$)")
_FIELD = re.compile(r"(?<!\S)(?!seed=)[^\s=]+=")
_SEPARATORS = re.compile(r"[\s,·/-]+")


@dataclass(frozen=True)
class Reference:
    """What a text names: a sweep, or runs of one that differ in nothing but the seed."""

    sweep: SweepRecord
    runs: tuple[SweptRun, ...]
    whole: bool
    """Whether the sweep itself is meant."""

    @property
    def id(self) -> str:
        """The identifier of what is meant; of an arm the sweep's and its name."""
        return self.sweep.id if self.whole else " ".join(run.run_id for run in self.runs)

    @property
    def label(self) -> str:
        """Its name in lists."""
        if self.whole:
            return self.sweep.name
        return self.runs[0].label if len(self.runs) == 1 else _arm(self.runs[0].label)

    @property
    def shown(self) -> str:
        """What is meant, for people."""
        if self.whole:
            return f"{self.sweep.id}  sweep {self.label}, {_counted(len(self.runs))}"
        if len(self.runs) == 1:
            return f"{self.runs[0].run_id}  run {self.label}"
        return f"{self.label!r}  arm of {_counted(len(self.runs))} of sweep {self.sweep.id}"

    @property
    def command(self) -> Command:
        """The command that makes the runs."""
        if self.whole:
            return self.sweep.command
        own = [run.overrides for run in self.runs]
        if len(own) == 1:
            return command_of(self.sweep, own[0], multirun=False)
        common = [text for text in own[0] if not _is_seed(text)]
        seeds = ",".join(text.partition("=")[2] for texts in own for text in texts if _is_seed(text))
        return command_of(self.sweep, [*common, f"seed={seeds}"], multirun=True)


def is_reference(word: str) -> bool:
    """Whether a word of a command is a name, and no override or flag.

    It has no equals sign, or before that a space; or it begins with a seed that more follows, as labels do where a
    sweep names its seeds first, or with a field that another or a seed follows; or it ends as the name of a run does,
    with a hyphen before the equals sign.
    """
    return _REFERENCE.fullmatch(word) is not None


def last_sweep(root: Path) -> Reference | None:
    """The sweep of an output root whose command was given last; None where there is none."""
    sweeps = read_sweeps(root)
    return Reference(sweeps[0], sweeps[0].runs, whole=True) if sweeps else None


def nothing_known(root: Path) -> str:
    """Why nothing below an output root, where no sweep is on record, has a name."""
    if not any(root.glob(f"runs/*/{RUN_RECORD}")):
        return "nothing has run there; name the root with root=..."
    return (
        f"no {SWEEP_RECORD} there says what its runs are called; give the overrides that made them, and `paribus run` "
        "with these puts them on record again"
    )


def find(text: str, root: Path) -> Reference:
    """The sweep, arm or run that `text` names; ConfigurationError, with candidates, for none and for several."""
    return _only(text, root)


def find_run_id(text: str, root: Path) -> str:
    """The identifier of the run that `text` names; of one whose sweep is not on record, as in the root of a rerun, the
    identifier, its start, or `last` for the one that was written last.

    ConfigurationError as of `find_run`.
    """
    with suppress(ValueError):
        if (root / "runs" / proper_run_id(text)).is_dir():
            return text
    if not read_sweeps(root):
        known = sorted((path for path in root.glob("runs/*") if path.is_dir()), key=_written)
        alike = known[-1:] if text == LAST else [path for path in known if path.name.startswith(text)]
        if len(alike) == 1:
            return alike[0].name
    return find_run(text, root).run_id


def command_line(run_id: str, root: Path) -> str | None:
    """The command that makes one run, as it would be typed; None where no sweep has it on record."""
    for sweep in read_sweeps(root):
        for run in sweep.runs:
            if run.run_id == run_id:
                directories = [word for name in sweep.config_directories for word in (CONFIG_DIR, name)]
                own = [text.removeprefix("+") if text.startswith("+experiment=") else text for text in run.overrides]
                return shlex.join(["paribus", "run", *directories, *own])
    return None


def find_run(text: str, root: Path) -> SweptRun:
    """The one run that `text` names, of several the one that is done; `last` is that of the last sweep whose record was
    written last.

    ConfigurationError as of `find`, and where it names several.
    """
    sweeps = read_sweeps(root) if text == LAST else []
    if sweeps:
        return max(sweeps[0].runs, key=lambda run: _written(root / "runs" / run.run_id))
    found = _only(text, root, lambda known: _is_done(known, root), lambda known: len(known.runs) == 1)
    if len(found.runs) > 1:
        raise ConfigurationError(f"{text!r} is several runs; name one:\n{_listed(_runs_of(found))}")
    return found.runs[0]


def _written(directory: Path) -> float:
    """When the record of a run was written; 0 for a run that has none."""
    path = directory / RUN_RECORD
    return path.stat().st_mtime if path.is_file() else 0.0


def _is_done(known: Reference, root: Path) -> bool:
    """Whether it is one run, whose record says that it is done."""
    record = read_run_record(root / "runs" / known.runs[0].run_id) if len(known.runs) == 1 else None
    return record is not None and record.get("status") == "done"


def _only(text: str, root: Path, *preferred: Callable[[Reference], bool]) -> Reference:
    """What `text` names, of several what the first of `preferred` that holds of any holds of."""
    sweeps = read_sweeps(root)
    if text == LAST and sweeps:
        return Reference(sweeps[0], sweeps[0].runs, whole=True)
    known, shown = list(_known(sweeps)), repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
    for names in (_by_identifier, _by_name, _by_start_of_identifier, _by_start_of_name):
        matching = [one for one in known if names(text, one)]
        chosen = ([one for one in matching if holds(one)] for holds in preferred)
        found = _distinct(next(filter(None, chosen), matching))
        if len(found) > 1:
            raise ConfigurationError(f"{text!r} may be several things; name one:\n{_listed(found)}")
        if found:
            return found[0]
    if not known:
        raise ConfigurationError(f"no run {shown} below {root}: {nothing_known(root)}")
    newest = list({one.id: one for one in known if one.whole or len(one.runs) == 1}.values())
    raise ConfigurationError(
        f"no run, arm or sweep {shown} below {root}; {_nearest(text, known)}there are\n{_listed(newest)}"
    )


def _nearest(text: str, known: Sequence[Reference]) -> str:
    """The question for what has the nearest name, as lists show it; empty where none is near."""
    labels = {name: one.label for one in known for name in {*_names(one), plain_name(one.label)}}
    close = difflib.get_close_matches(plain_name(text)[:LONGEST], labels, n=1, cutoff=0.5)
    return f"did you mean {labels[close[0]]!r}? " if close else ""


def _known(sweeps: Sequence[SweepRecord]) -> Iterator[Reference]:
    """All that can be named: sweeps, their runs, and their arms; what is newer first."""
    for sweep in sweeps:
        yield Reference(sweep, sweep.runs, whole=True)
        arms: dict[tuple[str, ...], list[SweptRun]] = {}
        for run in sweep.runs:
            yield Reference(sweep, (run,), whole=False)
            arms.setdefault(tuple(text for text in run.overrides if not _is_seed(text)), []).append(run)
        yield from (Reference(sweep, tuple(runs), whole=False) for runs in arms.values() if len(runs) > 1)


def _distinct(found: Sequence[Reference]) -> list[Reference]:
    """Each sweep, arm and run once, as the newest sweep has it; none of the runs and arms that are part of another."""
    once = list({(one.whole, one.id): one for one in reversed(found)}.values())[::-1]
    parts = [(one, {run.run_id for run in one.runs}) for one in once if not one.whole]
    covered = {one.id for one, runs in parts if any(runs < others for _, others in parts)}
    return [one for one in once if one.whole or one.id not in covered]


def _by_identifier(text: str, one: Reference) -> bool:
    return text == one.id


def _by_start_of_identifier(text: str, one: Reference) -> bool:
    return (one.whole or len(one.runs) == 1) and one.id.startswith(text)


def _by_name(text: str, one: Reference) -> bool:
    return plain_name(text) in _names(one)


def _by_start_of_name(text: str, one: Reference) -> bool:
    return any(name.startswith(plain_name(text)) for name in _names(one))


def _names(one: Reference) -> set[str]:
    """Names of a sweep; of a run those with its seed, of an arm and of a run that is one those without."""
    if one.whole:
        return {plain_name(one.sweep.name)}
    run = one.runs[0]
    called = {run.name, run.label, _by_values(run.label)}
    arms = {_arm(name) for name in called}
    alone = sum(_arm(other.label) == _arm(run.label) for other in one.sweep.runs) == 1
    seeds = [text for text in run.overrides if _is_seed(text)]
    seeded = {name for arm in arms for seed in seeds for name in (f"{arm} {seed}", f"{seed} {arm}")}
    whole = called | seeded if len(one.runs) == 1 else set()
    return {plain_name(name) for name in whole | (arms if alone or len(one.runs) > 1 else set()) if name}


def _by_values(label: str) -> str:
    """A label as reports have it: of a field its value alone."""
    return _FIELD.sub("", label)


def plain_name(name: str) -> str:
    """A name with one kind of separator, however it was copied from a table or a list."""
    return _SEPARATORS.sub(" ", name.strip())


def _arm(name: str) -> str:
    return _SEED.sub("", name)


def _is_seed(override: str) -> bool:
    return override_key(override) == "seed"


def _runs_of(found: Reference) -> list[Reference]:
    return [Reference(found.sweep, (run,), whole=False) for run in found.runs]


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _listed(found: Sequence[Reference]) -> str:
    lines = [f"  {one.shown}" for one in found[:SHOWN]]
    more = len(found) - SHOWN
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])
