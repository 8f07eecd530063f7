"""Overrides in, frozen `RunConfig`s out. What Hydra does for that is in `composing`: no DictConfig leaves these.

Before anything runs, every job of a sweep is composed and validated, and all problems of the command are reported
together. Jobs are then run by the Hydra launcher that the user chose (`composing/launch.py`); which, and how often, the
caller decides, so Hydra's sweepers have no part in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from paribus.config.arguments import Command, override_key
from paribus.config.arms import ARM
from paribus.config.composing.composer import Composed, Composer
from paribus.config.composing.override import add_found
from paribus.config.composing.plain import Build, plain
from paribus.config.composing.session import initialized
from paribus.config.composing.sweep import PARAMETERS, expand, with_fields_of_files
from paribus.config.composing.usable import usable_overrides
from paribus.config.hydra_settings import in_a_line
from paribus.config.interpolations import with_remedy
from paribus.config.schema import RunConfig
from paribus.config.validate import Problem, build_run, problems_of, refuse
from paribus.errors import ConfigurationError

JOBS_AT_ONCE = "hydra.launcher.n_jobs"


@dataclass(frozen=True)
class Job:
    """One run of a command: the overrides that make it and its configuration."""

    overrides: tuple[str, ...]
    config: RunConfig


@dataclass(frozen=True)
class Composition:
    """All runs of a command, and the paths in which they differ on purpose (the seed is not one of them).

    These are the swept ones, then those declared in `factors`.
    """

    jobs: tuple[Job, ...]
    factors: tuple[str, ...]
    multirun: bool
    launcher: str = "basic"
    """Name of the Hydra launcher that runs the jobs, also a single one."""


def compose(command: Command, build: Build = build_run) -> Composition:
    """Compose and build every job of a command; ConfigurationError lists all problems of all jobs at once."""
    with initialized(command):
        composer = Composer()
        problems, usable = usable_overrides(command.overrides, composer)
        base = _compose(usable.common, composer, problems)
        usable = with_fields_of_files(usable, base, composer)
        jobs, factors, multirun = expand(command, usable, base, composer, problems)
        composed = [_job(overrides, build, composer, problems) for overrides in jobs]
        launcher = str(OmegaConf.select(base, "hydra.runtime.choices")["hydra/launcher"]) if base is not None else ""
        if base is not None and launcher == "joblib" and OmegaConf.select(base, JOBS_AT_ONCE) == 0:
            problems.append(Problem(JOBS_AT_ONCE, "0 would run no job; give how many run at once, or -1 for all cores"))
    if problems:
        # Those of the whole command and of a job differ at most in the spaces with which Hydra tells an override.
        raise refuse(list({"".join(str(problem).split()): problem for problem in problems}.values()))
    configured = [job for job in composed if job is not None]
    declared = (factor for job in configured for factor in job.config.factors)
    return Composition(tuple(configured), tuple(dict.fromkeys((*factors, *declared))), multirun, launcher)


def _compose(overrides: list[str], composer: Composer, problems: list[Problem]) -> DictConfig | None:
    try:
        composed = composer.whole(overrides)
        for path in ("hydra.mode", "hydra.sweeper.params"):  # read here, where an error of theirs is told
            OmegaConf.select(composed, path)
        return composed
    except Exception as error:  # Hydra and OmegaConf let pass whatever a malformed value makes them stumble over
        problems.append(Problem("overrides", in_a_line(error)))
        return None


def _job(overrides: list[str], build: Build, composer: Composer, problems: list[Problem]) -> Job | None:
    try:
        composed = composer.job(overrides)
    except Exception as error:  # as in `_compose`
        problems.append(Problem("overrides", in_a_line(error)))
        return None
    unfit = [*_several(overrides, composed, composer), *_unlike_arm(composed.choices, composer)]
    if add_found(problems, unfit):
        return None
    try:
        if composed.refused:
            raise refuse([Problem(*found) for found in composed.refused])
        return Job(tuple(overrides), build(plain(composed.values)))
    except OmegaConfBaseException as error:
        problems.append(Problem(error.full_key or "overrides", with_remedy(in_a_line(error))))
    except ConfigurationError as error:
        problems += problems_of(error)
    return None


def _several(overrides: Sequence[str], composed: Composed, composer: Composer) -> Iterator[Problem]:
    """Groups in which a list of defaults chooses several, of which Hydra would merge the files into one of no name."""
    deleted = [override_key(text) for text in overrides if text.startswith("~")]
    for group in (*map(str, composed.values), ARM):
        if group not in (*composed.choices, *deleted, "experiment") and composer.options(group):
            told = "takes one choice, and a list of defaults names several"
            yield Problem(group, f"{told}; under {PARAMETERS} {group}: a,b makes a run of each")


def _unlike_arm(choices: Mapping[str, Any], composer: Composer) -> Iterator[Problem]:
    """Groups in which something else is chosen than the arm does: rows would be named by what they are not."""
    arm = choices.get(ARM)
    for group, option in ((arm and composer.chosen_by(arm)) or {}).items():
        if choices[group] != option:
            told = f"{ARM}={arm} chooses {group}={option}, and the command or its experiment {group}={choices[group]}"
            yield Problem(group, f"{told}; leave one of them out")
