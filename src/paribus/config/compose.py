"""Overrides in, frozen `RunConfig`s out. With `composing` the only importer of Hydra: no DictConfig leaves these.

Before anything runs, every job of a sweep is composed and validated, and all problems of the command are reported
together. Jobs are then run by the Hydra launcher that the user chose; which, and how often, the caller decides, so
Hydra's sweepers have no part in it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.callbacks import Callbacks
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from hydra.version import setbase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from paribus.config.arguments import Command, Overrides, choosing, override_key, torn, unquoted
from paribus.config.arms import ARM, AS_ARMS, CHOSEN
from paribus.config.composing.composer import Composed, Composer, values_of
from paribus.config.composing.loader import Loader
from paribus.config.hydra_settings import in_a_line
from paribus.config.interpolations import refused, with_remedy
from paribus.config.reference.files import configuration_directory
from paribus.config.reference.meant import block_as_value, meant, without_a_value
from paribus.config.schema import RunConfig, has_field, kinds_with
from paribus.config.validate import Problem, build_run, problems_of, refuse, unknown
from paribus.errors import ConfigurationError


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
    """Name of the Hydra launcher that runs the jobs of a multirun."""


_PARAMETERS = "hydra.sweeper.params"
Build = Callable[[Mapping[str, Any]], RunConfig]
"""From nested plain data to a configuration; ConfigurationError as `paribus.config.validate.refuse` has it."""


def compose(command: Command, build: Build = build_run) -> Composition:
    """Compose and build every job of a command; ConfigurationError lists all problems of all jobs at once."""
    with _initialized(command):
        composer = Composer()
        problems, usable = _usable(command.overrides, composer)
        base = _compose(usable.common, composer, problems)
        usable = _with_fields_of_files(usable, base, composer)
        jobs, factors, multirun = _expand(command, usable, base, composer, problems)
        composed = [_job(overrides, build, composer, problems) for overrides in jobs]
        problems += _dropped(jobs, usable, composer) if multirun and not problems else []
        launcher = str(OmegaConf.select(base, "hydra.runtime.choices")["hydra/launcher"]) if base is not None else ""
    if problems:
        # Those of the whole command and of a job differ at most in the spaces with which Hydra tells an override.
        raise refuse(list({"".join(str(problem).split()): problem for problem in problems}.values()))
    configured = [job for job in composed if job is not None]
    declared = (factor for job in configured for factor in job.config.factors)
    return Composition(tuple(configured), tuple(dict.fromkeys((*factors, *declared))), multirun, launcher)


def run_with_hydra(
    command: Command, jobs: Sequence[Sequence[str]], build: Build, function: Callable[[RunConfig], None]
) -> None:
    """Call `function(config)` once a job, given as its overrides, with the launcher that the command names.

    `build` makes and checks the configuration where the job runs, as it did for the command.

    A launcher may send `function` to other processes and machines. Whatever goes wrong there is raised, also where
    only one of several jobs was lost.
    """

    def task(cfg: DictConfig) -> None:
        function(build(_plain(values_of(cfg))))

    with _initialized(command) as hydra_app:
        loader = hydra_app.config_loader
        # Of the first job: settings of the launcher are those of the command, and so of all its jobs.
        config = loader.load_configuration("config", list(jobs[0]), RunMode.MULTIRUN)
        # The launcher adds those of Hydra itself again.
        own = [[text for text in job if not override_key(text).startswith(("hydra.", "hydra/"))] for job in jobs]
        callbacks = Callbacks(config)
        callbacks.on_multirun_start(config=config, config_name="config")
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=loader, callbacks=callbacks), task_function=task, config=config
        )
        most = OmegaConf.select(config, "hydra.sweeper.max_batch_size") or len(jobs)
        for first in range(0, len(jobs), most):
            returned = launcher.launch(own[first : first + most], initial_job_idx=first)
            # Reading a value raises what the job raised; launchers themselves keep silent about that.
            _ = [job.return_value for job in returned]
        callbacks.on_multirun_end(config=config, config_name="config")


def show_with_hydra(command: Command) -> None:
    """Hydra's own --help, --cfg, --info, shell completion: print and return."""
    _with_arguments(command.shown_by_hydra, hydra.main(**_main_options(command))(lambda cfg: None))


def _main_options(command: Command) -> dict[str, Any]:
    return {"config_path": str(configuration_directory()), "config_name": "config", "version_base": "1.3"}


def _with_arguments(arguments: Sequence[str], function: Callable[[], Any]) -> None:
    saved = sys.argv
    sys.argv = ["paribus", *arguments]
    try:
        function()
    finally:
        sys.argv = saved


@contextmanager
def _initialized(command: Command) -> Iterator[Hydra]:
    """Hydra with our groups and those of --config-dir, as its own command line would have them."""
    setbase("1.3")
    path = create_config_search_path(str(configuration_directory()))
    for directory in command.config_directories:
        if not Path(directory).is_dir():
            raise refuse([Problem("--config-dir", f"{directory} is no directory; name the one that holds your groups")])
        path.prepend("command-line", f"file://{Path(directory).resolve()}", anchor="schema")
    try:
        hydra_app = Hydra("paribus", Loader(path))
        GlobalHydra.instance().initialize(hydra_app)
        yield hydra_app
    finally:
        GlobalHydra.instance().clear()


def _usable(overrides: Sequence[str], composer: Composer) -> tuple[list[Problem], Overrides]:
    """Judge each override by itself, so that one bad override does not hide the others."""
    pieces = torn(overrides)
    problems = [Problem(each.key, each.told) for each in pieces]
    whole = [text for text in overrides if not any(text in each.words for each in pieces)]
    parsed = [override for text in whole if (override := _parse(text, problems)) is not None]
    choices = [override for override in parsed if composer.is_choice(override)]
    accepted = [override for override in choices if not _add(problems, _unknown_choice(override, composer))]
    # Keys are looked up in what the choices compose to, without values: a bad value must not hide an unknown key.
    reference = _reference(accepted, composer)
    swept = _swept_groups(accepted, reference, composer)
    only_for: dict[str, frozenset[tuple[str, str]]] = {}
    for override in (override for override in parsed if override not in choices):
        path = str(override.key_or_group)
        knowing = _knowing(override, accepted, swept, composer)
        if knowing is not None:
            only_for[path] = knowing
        if knowing or not _add(problems, _unknown_key(override, reference)):
            accepted.append(override)
    accepted = _last_of_each(accepted)
    return problems, Overrides(
        [o.input_line or "" for o in accepted if not o.is_sweep_override()],
        [o.input_line or "" for o in accepted if o.is_sweep_override()],
        {path: knowing for path, knowing in only_for.items() if knowing},
    )


def _last_of_each(overrides: Sequence[Override]) -> list[Override]:
    """Without what a later override of the same key replaces, whether it gives one value or several to sweep."""
    last = {override.get_key_element(): place for place, override in enumerate(overrides) if _sets(override)}
    return [o for place, o in enumerate(overrides) if not _sets(o) or last[o.get_key_element()] == place]


def _sets(override: Override) -> bool:
    """Whether it gives a value to a key that is there, and neither adds nor deletes one."""
    return not (override.is_add() or override.is_force_add() or override.is_delete())


def _swept_groups(choices: list[Override], reference: DictConfig, composer: Composer) -> dict[str, list[str]]:
    """Group -> its choices, of the groups of which a multirun takes several."""
    swept = {str(o.key_or_group): _choices_of(o) for o in choices if o.is_sweep_override()}
    parameters = OmegaConf.select(reference, "hydra.sweeper.params") or {}
    texts = [f"{key}={value}" for key, value in parameters.items() if composer.options(str(key))]
    # What cannot be parsed is told with all that is swept (`_unfit`).
    listed = [override for text in texts if (override := _parse(text, [])) is not None]
    return {str(o.key_or_group): _choices_of(o) for o in listed} | swept


def _knowing(
    override: Override, choices: list[Override], swept: Mapping[str, list[str]], composer: Composer
) -> frozenset[tuple[str, str]] | None:
    """The choices of a swept group with which a field is there; None where it is with all, or it was appended.

    The group is the field's own, or that of arms where these choose in it.
    """
    own = str(override.key_or_group).split(".")[0]
    group = own if own not in CHOSEN or len(swept.get(own, [])) > 1 else ARM
    if len(swept.get(group, [])) < 2 or override.is_add() or override.is_force_add():
        return None
    others = [o for o in choices if str(o.key_or_group) != group and composer.is_choice(o)]
    references = {choice: _reference(others, composer, choosing(group, choice)) for choice in swept[group]}
    known = [choice for choice, reference in references.items() if not _unknown_key(override, reference)]
    return None if len(known) == len(references) else frozenset((group, choice) for choice in known)


def _parse(text: str, problems: list[Problem]) -> Override | None:
    # Line ends and control characters would take the message apart, and the terminal with it.
    shown = text if text.isprintable() else repr(text)
    try:
        parsed = OverridesParser.create().parse_override(text)
    except (HydraException, ValueError) as error:  # ValueError: a number of more digits than Python reads
        named = "=" in text or text.startswith("~")
        told = f"is not a Hydra override: {in_a_line(error)}" if named else without_a_value(text)
        problems.append(Problem(shown, told))
        return None
    if not parsed.key_or_group:
        problems.append(Problem(shown, "is not a Hydra override: it names no field and no group"))
        return None
    if parsed.value_type in (ValueType.INTERVAL_SWEEP, ValueType.GLOB_CHOICE_SWEEP):
        problems.append(Problem(str(parsed.key_or_group), f"{text} does not name its values; list them: a,b,c"))
        return None
    if parsed.is_sweep_override() and getattr(parsed.value(), "shuffle", False):
        told = f"{text} has another order whenever it is read, and the first row is what others are compared with"
        problems.append(Problem(str(parsed.key_or_group), f"{told}; list them: a,b,c"))
        return None
    if parsed.is_sweep_override() and not list(parsed.sweep_iterator()):
        problems.append(Problem(str(parsed.key_or_group), f"{text} has no values, and so no run; list them: a,b,c"))
        return None
    return parsed


def _add(problems: list[Problem], found: list[Problem]) -> bool:
    problems += found
    return bool(found)


def _choices_of(override: Override) -> list[str]:
    if override.is_sweep_override():
        return [unquoted(str(value)) for value in override.sweep_string_iterator()]
    value = override.value()
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _unknown_choice(override: Override, composer: Composer) -> list[Problem]:
    group = str(override.key_or_group)
    options = composer.options(group)
    chosen = [] if override.is_delete() else _choices_of(override)
    if not chosen and not override.is_delete():
        return [Problem(group, f"names no choice; known: {', '.join(options)}")]
    if not override.is_sweep_override() and not override.is_delete() and isinstance(override.value(), list):
        return [Problem(group, f"takes one choice; -m {group}={','.join(chosen)} makes a run of each")]
    if group == ARM and (empty := [arm for arm in chosen if arm in options and composer.chosen_by(arm) == {}]):
        return [Problem(ARM, f"{arm}.yaml is no arm: {AS_ARMS}") for arm in empty]
    wrong = [v for v in chosen if v not in options and v != "None"]
    nested = [v for v in wrong if "/" in v and Path(v).name in composer.options(f"{group}/{Path(v).parent}")]
    known = composer.nested_options(group) if len(nested) < len(wrong) else options
    return [
        Problem(
            group,
            unknown(value, known) + meant(group, value, options, composer.options(ARM)),
        )
        for value in wrong
        if value not in nested
    ]


def _reference(choices: list[Override], composer: Composer, *more: str) -> DictConfig:
    """The composed configuration that keys are looked up in: the first value of every choice."""
    lines = [choosing(o.get_key_element(), _choices_of(o)[0]) for o in choices if not o.is_delete()]
    try:
        return composer.whole([*lines, *more])
    except Exception:  # told by whoever composes the whole, with all overrides
        return composer.whole([])


def _unknown_key(override: Override, reference: DictConfig) -> list[Problem]:
    """An override of a key that is not there. What `+` appends is judged with the whole configuration."""
    path = str(override.key_or_group)
    if override.is_add() or override.is_force_add():
        return []
    parent: Any = reference
    node: Any = reference
    for depth, part in enumerate(path.split(".")):
        if not isinstance(node, DictConfig):
            return []
        keys = [str(key) for key in node]
        if part not in keys:
            where = ".".join(path.split(".")[:depth])
            if has_field(".".join(path.split(".")[: depth + 1])):
                return [Problem(path, f"no file gives {part!r}, so it takes a plus: +{override.input_line}")]
            known = [key for key in keys if key != "hydra"]
            told = f"{unknown(part, known)}{f' (in {where})' if where else ''}"
            kinds = kinds_with(where, part)
            return [Problem(path, f"{told}; {where} of kind {' or '.join(kinds)} has it" if kinds else told)]
        parent, node = node, node._get_node(part)
    return _block_as_value(override, parent, node)


def _block_as_value(override: Override, parent: DictConfig, node: Any) -> list[Problem]:
    """A value, `seeds=0,1`, for a block of fields that is no group; `seeds={order:0},{order:1}` gives fields."""
    path, value = str(override.key_or_group), (override.input_line or "").partition("=")[2]
    if override.is_delete() or not isinstance(node, DictConfig) or "${" in value:
        return []
    given = override.value()
    if all(each is None or isinstance(each, dict) for each in getattr(given, "list", [given])):
        return []
    beside = [str(key) for key in parent if not isinstance(parent._get_node(key), DictConfig)]
    return [Problem(path, block_as_value(path, value, [str(key) for key in node], beside))]


def _compose(overrides: list[str], composer: Composer, problems: list[Problem]) -> DictConfig | None:
    try:
        composed = composer.whole(overrides)
        for path in ("hydra.mode", "hydra.sweeper.params"):  # read here, where an error of theirs is told
            OmegaConf.select(composed, path)
        return composed
    except Exception as error:  # Hydra and OmegaConf let pass whatever a malformed value makes them stumble over
        problems.append(Problem("overrides", in_a_line(error)))
        return None


def _expand(
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
    if _add(problems, _unswept(named, base) if not multirun else _unfit(named, usable, base, composer)):
        return [], (), False
    swept = {str(key): f"{key}={value}" for key, value in parameters.items()} if multirun else {}
    swept |= {text.split("=", 1)[0]: text for text in usable.sweeping}
    parsed = OverridesParser.create().parse_overrides([*swept.values(), *usable.plain])
    if _add(problems, list(_given_twice(parsed))):
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


def _unswept(listed: Mapping[str, str], base: DictConfig | None) -> list[Problem]:
    """Parameters of Hydra's sweeper, which only a multirun reads: without it the arms of a file would be one run."""
    if not listed or base is None or OmegaConf.select(base, "hydra.mode") is not None:
        return []
    remedy = "set hydra.mode: MULTIRUN in the file that names them, or give -m"
    told = f"a multirun alone reads {', '.join(listed)}: {remedy}"
    return [Problem(_PARAMETERS, told)]


def _unfit(listed: Mapping[str, str], usable: Overrides, base: DictConfig | None, composer: Composer) -> list[Problem]:
    """What is wrong with parameters of Hydra's sweeper, as it is told of overrides."""
    problems: list[Problem] = []
    parsed = [override for text in listed.values() if (override := _parse(text, problems)) is not None]
    choices = [override for override in parsed if composer.is_choice(override)]
    for override in choices:
        several = None if override.is_sweep_override() else override.value()
        if isinstance(several, list):
            listing = f"{override.key_or_group}: {','.join(map(str, several))}"
            problems.append(Problem(str(override.key_or_group), f"takes one choice; {listing} makes a run of each"))
        else:
            problems += _unknown_choice(override, composer)
    if problems or base is None:
        return [Problem(f"{_PARAMETERS}.{each.path}", each.message) for each in problems]
    reference = _reference([*choices, *_chosen(usable, composer)], composer)
    for override in (override for override in parsed if override not in choices):
        if str(override.key_or_group) not in usable.only_for:
            problems += _unknown_key(override, reference)
    return [Problem(f"{_PARAMETERS}.{each.path}", each.message) for each in problems]


def _with_fields_of_files(usable: Overrides, base: DictConfig | None, composer: Composer) -> Overrides:
    """Also what only some choices know of the fields that Hydra's sweeper has parameters of."""
    parameters = OmegaConf.select(base, _PARAMETERS) if base is not None else None
    parsed = [_parse(f"{key}={value}", []) for key, value in (parameters or {}).items()]
    listed = [override for override in parsed if override is not None]
    fields = {str(override.key_or_group): override for override in listed if not composer.is_choice(override)}
    if base is None or not fields:
        return usable
    choices = [*filter(composer.is_choice, listed), *_chosen(usable, composer)]
    swept = _swept_groups(choices, base, composer)
    found = {path: _knowing(override, choices, swept, composer) for path, override in fields.items()}
    known = {path: knowing for path, knowing in found.items() if knowing}
    return replace(usable, only_for={**known, **usable.only_for})


def _chosen(usable: Overrides, composer: Composer) -> list[Override]:
    """What a command chooses in groups."""
    given = OverridesParser.create().parse_overrides([*usable.common, *usable.sweeping])
    return [override for override in given if composer.is_choice(override)]


def _dropped(jobs: Sequence[list[str]], usable: Overrides, composer: Composer) -> Iterator[Problem]:
    """Parameters of Hydra's sweeper that nobody reads, as not all runs choose their file: of one of two experiments."""
    for job in jobs:
        given = {*map(override_key, job), *usable.only_for}
        if listed := [key for key in composer.job(job).swept if override_key(key) not in given]:
            remedy = "give each such file a command of its own, or sweep them on the command line"
            yield Problem(_PARAMETERS, f"{', '.join(listed)} of a file that not all runs choose are dropped: {remedy}")


def _job(overrides: list[str], build: Build, composer: Composer, problems: list[Problem]) -> Job | None:
    try:
        composed = composer.job(overrides)
    except Exception as error:  # as in `_compose`
        problems.append(Problem("overrides", in_a_line(error)))
        return None
    unfit = [*_several(overrides, composed, composer), *_unlike_arm(composed.choices, composer)]
    if _add(problems, unfit):
        return None
    try:
        if composed.refused:
            raise refuse([Problem(*found) for found in composed.refused])
        return Job(tuple(overrides), build(_plain(composed.values)))
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
            yield Problem(group, f"{told}; under {_PARAMETERS} {group}: a,b makes a run of each")


def _unlike_arm(choices: Mapping[str, Any], composer: Composer) -> Iterator[Problem]:
    """Groups in which something else is chosen than the arm does: rows would be named by what they are not."""
    arm = choices.get(ARM)
    for group, option in ((arm and composer.chosen_by(arm)) or {}).items():
        if choices[group] != option:
            told = f"{ARM}={arm} chooses {group}={option}, and the command or its experiment {group}={choices[group]}"
            yield Problem(group, f"{told}; leave one of them out")


def _plain(values: DictConfig) -> dict[str, Any]:
    if forbidden := [Problem(*found) for found in refused(OmegaConf.to_container(values, resolve=False))]:
        raise refuse(forbidden)
    plain = OmegaConf.to_container(values, resolve=True, throw_on_missing=False)
    if not isinstance(plain, dict):
        raise TypeError("the composed configuration is not a mapping")
    return {str(key): value for key, value in plain.items()}
