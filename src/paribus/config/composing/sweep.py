"""The jobs of a command: what it sweeps itself, and the parameters of Hydra's sweeper that its files name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from paribus.config.arguments import Command, Overrides, override_key
from paribus.config.composing.composer import Composer
from paribus.config.composing.known import choices_with, reference_of, swept_groups, unknown_choice, unknown_key
from paribus.config.composing.override import add_found, parse_override
from paribus.config.validate import Problem

PARAMETERS, EXPERIMENT = "hydra.sweeper.params", "experiment"


def expand(
    command: Command, usable: Overrides, base: DictConfig | None, composer: Composer, problems: list[Problem]
) -> tuple[list[list[str]], tuple[str, ...], bool]:
    """Overrides of each job, the declared factors, and whether this is a multirun."""
    parameters: Mapping[str, Any] = {}
    multirun = command.multirun
    if base is not None:
        multirun = multirun or str(OmegaConf.select(base, "hydra.mode")) == "RunMode.MULTIRUN"
        parameters = OmegaConf.to_container(OmegaConf.select(base, "hydra.sweeper.params") or OmegaConf.create({}))  # type: ignore[assignment]
    if not multirun and usable.sweeping:
        listed = ", ".join(usable.sweeping)
        problems.append(Problem("overrides", f"{listed} gives several values: add -m for a multirun"))
        return [], (), False
    given = {override_key(text) for text in (*usable.plain, *usable.sweeping)}
    named = {str(key): f"{key}={value}" for key, value in parameters.items() if str(key) not in given}
    if add_found(problems, _unswept(named, base) if not multirun else _unfit(named, usable, base, composer)):
        return [], (), False
    swept = {str(key): f"{key}={value}" for key, value in parameters.items()} if multirun else {}
    swept |= {text.split("=", 1)[0]: text for text in usable.sweeping}
    parsed = OverridesParser.create().parse_overrides([*swept.values(), *usable.plain])
    if add_found(problems, [*_given_twice(parsed), *_experiments(parsed)]):
        return [], (), False
    lists = BasicSweeper.split_arguments(parsed, None)[0]
    names = [o.get_key_element().lstrip("+") for o in parsed if o.is_sweep_override()]
    factors = tuple(name.replace("/", ".").split("@")[0] for name in names if name != "seed")
    jobs = dict.fromkeys(usable.fit(job) for job in lists)
    return [list(job) for job in jobs], factors, multirun


def _given_twice(parsed: Sequence[Override]) -> Iterator[Problem]:
    """Sweeps of which another override leaves one value, `seed=0,1 ++seed=2`: a table would have one run twice."""
    for place, override in enumerate(parsed):
        key, element = override_key(override.get_key_element()), override.get_key_element()
        for other in parsed[:place]:
            again = override_key(other.get_key_element()) == key and other.get_key_element() != element
            if again and (override.is_sweep_override() or other.is_sweep_override()):
                yield Problem(key, f"given by {other.input_line} and by {override.input_line}; leave one of them out")


def _experiments(parsed: Sequence[Override]) -> Iterator[Problem]:
    """A sweep over experiments, whose files may sweep in ways of their own."""
    if any(override_key(text.get_key_element()) == EXPERIMENT and text.is_sweep_override() for text in parsed):
        yield Problem(EXPERIMENT, "takes one experiment; give each a command of its own")


def _unswept(listed: Mapping[str, str], base: DictConfig | None) -> list[Problem]:
    """Parameters of Hydra's sweeper, which only a multirun reads: without it the arms of a file would be one run."""
    if not listed or base is None or OmegaConf.select(base, "hydra.mode") is not None:
        return []
    remedy = "set hydra.mode: MULTIRUN in the file that names them, or give -m"
    told = f"a multirun alone reads {', '.join(listed)}: {remedy}"
    return [Problem(PARAMETERS, told)]


def _unfit(listed: Mapping[str, str], usable: Overrides, base: DictConfig | None, composer: Composer) -> list[Problem]:
    """What is wrong with parameters of Hydra's sweeper, as it is told of overrides."""
    problems: list[Problem] = []
    parsed = [override for text in listed.values() if (override := parse_override(text, problems)) is not None]
    choices = [override for override in parsed if composer.is_choice(override)]
    for override in choices:
        several = None if override.is_sweep_override() else override.value()
        if isinstance(several, list):
            listing = f"{override.key_or_group}: {','.join(map(str, several))}"
            problems.append(Problem(str(override.key_or_group), f"takes one choice; {listing} makes a run of each"))
        else:
            problems += unknown_choice(override, composer)
    if problems or base is None:
        return [Problem(f"{PARAMETERS}.{each.path}", each.message) for each in problems]
    reference = reference_of([*choices, *_chosen(usable, composer)], composer)
    for override in (override for override in parsed if override not in choices):
        if str(override.key_or_group) not in usable.only_for:
            problems += unknown_key(override, reference)
    return [Problem(f"{PARAMETERS}.{each.path}", each.message) for each in problems]


def with_fields_of_files(usable: Overrides, base: DictConfig | None, composer: Composer) -> Overrides:
    """Also what only some choices know of the fields that Hydra's sweeper has parameters of."""
    parameters = OmegaConf.select(base, PARAMETERS) if base is not None else None
    parsed = [parse_override(f"{key}={value}", []) for key, value in (parameters or {}).items()]
    listed = [override for override in parsed if override is not None]
    fields = {str(override.key_or_group): override for override in listed if not composer.is_choice(override)}
    if base is None or not fields:
        return usable
    choices = [*filter(composer.is_choice, listed), *_chosen(usable, composer)]
    swept = swept_groups(choices, base, composer)
    found = {path: choices_with(override, choices, swept, composer) for path, override in fields.items()}
    known = {path: knowing for path, knowing in found.items() if knowing}
    return replace(usable, only_for={**known, **usable.only_for})


def _chosen(usable: Overrides, composer: Composer) -> list[Override]:
    """What a command chooses in groups."""
    given = OverridesParser.create().parse_overrides([*usable.common, *usable.sweeping])
    return [override for override in given if composer.is_choice(override)]
