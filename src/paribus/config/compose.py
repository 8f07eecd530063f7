"""Overrides in, frozen `RunConfig`s out. What Hydra does for that is in `hydra_session`: no DictConfig leaves these.

Before anything runs, every job of a sweep is composed and validated, and all problems of the command are reported
together. Jobs are then run by the Hydra launcher that the user chose (`run_with_hydra`); which, and how often, the
caller decides, so Hydra's sweepers have no part in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from paribus.config.arguments import Command, Overrides, broken_lists, choosing, override_key, quoted, unquoted
from paribus.config.fields import ARM, AS_ARMS, CHOSEN
from paribus.config.hydra_session import Build, Composed, Composer, in_a_line, initialized, plain, with_remedy
from paribus.config.schema import RunConfig, has_field, kinds_with
from paribus.config.validate import build_run, did_you_mean, unknown
from paribus.errors import ConfigurationError, Problem

JOBS_AT_ONCE = "hydra.launcher.n_jobs"
PARAMETERS, EXPERIMENT = "hydra.sweeper.params", "experiment"


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
        # Problems of the command and of a job differ at most in the spaces with which Hydra shows an override.
        raise ConfigurationError(*list({"".join(str(problem).split()): problem for problem in problems}.values()))
    configured = [job for job in composed if job is not None]
    declared = (factor for job in configured for factor in job.config.factors)
    return Composition(tuple(configured), tuple(dict.fromkeys((*factors, *declared))), multirun, launcher)


def _compose(overrides: list[str], composer: Composer, problems: list[Problem]) -> DictConfig | None:
    try:
        composed = composer.whole(overrides)
        for path in ("hydra.mode", PARAMETERS):  # read here, so that their errors are reported
            OmegaConf.select(composed, path)
        return composed
    except Exception as error:  # Hydra and OmegaConf raise whatever a malformed value makes them fail with
        problems.append(Problem("overrides", in_a_line(error)))
        return None


def _job(overrides: list[str], build: Build, composer: Composer, problems: list[Problem]) -> Job | None:
    try:
        composed = composer.job(overrides)
    except Exception as error:  # as in `_compose`
        problems.append(Problem("overrides", in_a_line(error)))
        return None
    if add_problems(problems, [*_choice_problems(overrides, composed, composer)]):
        return None
    try:
        if composed.refused:
            raise ConfigurationError(*composed.refused)
        return Job(tuple(overrides), build(plain(composed.values)))
    except OmegaConfBaseException as error:
        problems.append(Problem(error.full_key or "overrides", with_remedy(in_a_line(error))))
    except ConfigurationError as error:
        problems += error.problems
    return None


def _choice_problems(overrides: Sequence[str], composed: Composed, composer: Composer) -> Iterator[Problem]:
    """Problems of groups in which a list of defaults chooses several, or the arm chooses another option."""
    choices, deleted = composed.choices, [override_key(text) for text in overrides if text.startswith("~")]
    for group in (*map(str, composed.values), ARM):
        if group not in (*choices, *deleted, "experiment") and composer.options(group):
            message = "takes one choice, and a list of defaults names several"
            yield Problem(group, f"{message}; under {PARAMETERS} {group}: a,b makes a run of each")
    arm = choices.get(ARM)
    for group, option in ((arm and composer.chosen_by(arm)) or {}).items():
        if choices[group] != option:
            other = f"the command or its experiment {group}={choices[group]}"
            yield Problem(group, f"{ARM}={arm} chooses {group}={option}, and {other}; leave one of them out")


def expand(
    command: Command, usable: Overrides, base: DictConfig | None, composer: Composer, problems: list[Problem]
) -> tuple[list[list[str]], tuple[str, ...], bool]:
    """Overrides of each job, the declared factors, and whether this is a multirun."""
    parameters: Mapping[str, Any] = {}
    multirun = command.multirun
    if base is not None:
        multirun = multirun or str(OmegaConf.select(base, "hydra.mode")) == "RunMode.MULTIRUN"
        parameters = OmegaConf.to_container(OmegaConf.select(base, PARAMETERS) or OmegaConf.create({}))  # type: ignore[assignment]
    if not multirun and usable.sweeping:
        listed = ", ".join(usable.sweeping)
        problems.append(Problem("overrides", f"{listed} gives several values: add -m for a multirun"))
        return [], (), False
    given = {override_key(text) for text in (*usable.plain, *usable.sweeping)}
    named = {str(key): f"{key}={value}" for key, value in parameters.items() if str(key) not in given}
    if multirun and add_problems(problems, _bad_parameters(named, usable, base, composer)):
        return [], (), False
    if not multirun and named and base is not None and OmegaConf.select(base, "hydra.mode") is None:
        # Without it the arms of a file would be one run.
        message = f"a multirun alone reads {', '.join(named)}: set hydra.mode: MULTIRUN in the file that names them"
        problems.append(Problem(PARAMETERS, f"{message}, or give -m"))
        return [], (), False
    swept = {str(key): f"{key}={value}" for key, value in parameters.items()} if multirun else {}
    swept |= {text.split("=", 1)[0]: text for text in usable.sweeping}
    parsed = OverridesParser.create().parse_overrides([*swept.values(), *usable.plain])
    if add_problems(problems, [*_sweep_problems(parsed)]):
        return [], (), False
    lists = BasicSweeper.split_arguments(parsed, None)[0]
    names = [o.get_key_element().lstrip("+") for o in parsed if o.is_sweep_override()]
    factors = tuple(name.replace("/", ".").split("@")[0] for name in names if name != "seed")
    return [list(job) for job in dict.fromkeys(usable.fit(job) for job in lists)], factors, multirun


def _sweep_problems(parsed: Sequence[Override]) -> Iterator[Problem]:
    """Problems of sweeps over experiments, and of those that another override ends, `seed=0,1 ++seed=2`."""
    for place, override in enumerate(parsed):
        key, element = override_key(override.get_key_element()), override.get_key_element()
        for other in parsed[:place]:
            again = override_key(other.get_key_element()) == key and other.get_key_element() != element
            if again and (override.is_sweep_override() or other.is_sweep_override()):
                yield Problem(key, f"given by {other.input_line} and by {override.input_line}; leave one of them out")
    if any(override_key(text.get_key_element()) == EXPERIMENT and text.is_sweep_override() for text in parsed):
        yield Problem(EXPERIMENT, "takes one experiment; give each a command of its own")


def _bad_parameters(
    listed: Mapping[str, str], usable: Overrides, base: DictConfig | None, composer: Composer
) -> list[Problem]:
    """Problems of parameters of Hydra's sweeper, judged as overrides are."""
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
    """The overrides with the fields of Hydra's parameters that only some choices have."""
    parameters = OmegaConf.select(base, PARAMETERS) if base is not None else None
    parsed = [parse_override(f"{key}={value}", []) for key, value in (parameters or {}).items()]
    listed = [override for override in parsed if override is not None]
    fields = {str(override.key_or_group): override for override in listed if not composer.is_choice(override)}
    if base is None or not fields:
        return usable
    choices = [*filter(composer.is_choice, listed), *_chosen(usable, composer)]
    swept = swept_groups(choices, base, composer)
    known = {path: choices_with(override, choices, swept, composer) for path, override in fields.items()}
    only_for = {path: knowing for path, knowing in known.items() if knowing}
    return replace(usable, only_for=only_for | dict(usable.only_for))


def _chosen(usable: Overrides, composer: Composer) -> list[Override]:
    given = OverridesParser.create().parse_overrides([*usable.common, *usable.sweeping])
    return [override for override in given if composer.is_choice(override)]


def parse_override(text: str, problems: list[Problem]) -> Override | None:
    """The override in a word; None where it can be none, which is added to the problems."""
    # Line ends and control characters would take the message apart, and the terminal with it.
    shown = text if text.isprintable() else repr(text)
    try:
        parsed = OverridesParser.create().parse_override(text)
    except (HydraException, ValueError) as error:  # ValueError: a number of more digits than Python reads
        message = f"is not a Hydra override: {in_a_line(error)}{_quoting_remedy(text)}"
        if "=" not in text and not text.startswith("~"):
            message = "is no override, which is typed NAME=VALUE; paribus explain lists groups and fields"
        problems.append(Problem(shown, message))
        return None
    wrong = None
    if not parsed.key_or_group:
        problems.append(Problem(shown, "is not a Hydra override: it names no field and no group"))
        return None
    if parsed.value_type in (ValueType.INTERVAL_SWEEP, ValueType.GLOB_CHOICE_SWEEP):
        wrong = "does not name its values"
    elif parsed.is_sweep_override() and getattr(parsed.value(), "shuffle", False):
        wrong = "has another order whenever it is read, and the first row is what others are compared with"
    elif parsed.is_sweep_override() and not list(parsed.sweep_iterator()):
        wrong = "has no values, and so no run"
    if wrong:
        problems.append(Problem(str(parsed.key_or_group), f"{text} {wrong}; list them: a,b,c"))
        return None
    return parsed


def _quoting_remedy(text: str) -> str:
    """Show how to type the values in quotes; empty if quotes alone do not help."""
    key, _, value = text.partition("=")
    listed = value.startswith("[") and value.endswith("]")
    items = [unquoted(item.strip()) for item in (value[1:-1] if listed else value).split(",")]
    values = ",".join(map(quoted, items))
    typed = f"{key}=[{values}]" if listed else f"{key}={values}"
    if not all(items) or not typed.isprintable() or set(typed) & set('"$`\\!'):  # which a shell reads within quotes
        return ""
    try:
        OverridesParser.create().parse_override(typed)
    except (HydraException, ValueError):
        return ""
    return f'; a text is typed in quotes: "{typed}"'


def choices_of(override: Override) -> list[str]:
    """The options of a group that an override names."""
    if override.is_sweep_override():
        return [unquoted(str(value)) for value in override.sweep_string_iterator()]
    value = override.value()
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _replaces_value(override: Override) -> bool:
    """True if an override replaces the value of a key, and neither adds nor deletes one."""
    return not (override.is_add() or override.is_force_add() or override.is_delete())


def add_problems(problems: list[Problem], more: list[Problem]) -> bool:
    """Add more problems; True if there are any."""
    problems += more
    return bool(more)


def unknown_choice(override: Override, composer: Composer) -> list[Problem]:
    """Problems of the choices of a group; none where their files exist."""
    group = str(override.key_or_group)
    if group == "hydra/sweeper" and choices_of(override) != ["basic"]:
        message = "no sweeper is used: paribus composes all jobs before the first runs, and hands them to the launcher"
        return [Problem(group, f"{message}; list what is to be compared, -m seed=0,1,2")]
    options = composer.options(group)
    chosen = [] if override.is_delete() else choices_of(override)
    if not chosen and not override.is_delete():
        return [Problem(group, f"names no choice; known: {', '.join(options)}")]
    if not override.is_sweep_override() and not override.is_delete() and isinstance(override.value(), list):
        return [Problem(group, f"takes one choice; -m {group}={','.join(chosen)} makes a run of each")]
    if group == ARM and (empty := [arm for arm in chosen if arm in options and composer.chosen_by(arm) == {}]):
        return [Problem(ARM, f"{arm}.yaml is no arm: {AS_ARMS}") for arm in empty]
    wrong = [v for v in chosen if v not in options and v != "None"]
    nested = [v for v in wrong if "/" in v and Path(v).name in composer.options(f"{group}/{Path(v).parent}")]
    known = composer.nested_options(group) if len(nested) < len(wrong) else options
    return [Problem(group, unknown(value, known)) for value in wrong if value not in nested]


def reference_of(choices: list[Override], composer: Composer, *more: str) -> DictConfig:
    """The composed configuration that keys are looked up in: the first value of every choice."""
    lines = [choosing(o.get_key_element(), choices_of(o)[0]) for o in choices if not o.is_delete()]
    try:
        return composer.whole([*lines, *more])
    except Exception:  # told by whoever composes the whole, with all overrides
        return composer.whole([])


def unknown_key(override: Override, reference: DictConfig) -> list[Problem]:
    """An override of a key that is not there. What `+` appends is judged with the whole configuration."""
    path = str(override.key_or_group)
    if override.is_add() or override.is_force_add():
        return []
    node: Any = reference
    for depth, part in enumerate(path.split(".")):
        if not isinstance(node, DictConfig):
            return []
        keys = [str(key) for key in node]
        if part not in keys:
            where = ".".join(path.split(".")[:depth])
            if has_field(".".join(path.split(".")[: depth + 1])):
                return [Problem(path, f"no file gives {part!r}, so it takes a plus: +{override.input_line}")]
            known, kinds = [key for key in keys if key != "hydra"], kinds_with(where, part)
            if not kinds and not path.startswith("hydra.") and not did_you_mean(part, known):
                listed = f"paribus explain {where}".strip()
                return [Problem(path, f"{part!r} is unknown; `{listed}` says what there is")]
            message = f"{unknown(part, known)}{f' (in {where})' if where else ''}"
            return [Problem(path, f"{message}; {where} of kind {' or '.join(kinds)} has it" if kinds else message)]
        node = node._get_node(part)
    return _block_as_value(override, node)


def _block_as_value(override: Override, node: Any) -> list[Problem]:
    """A value, `seeds=0,1`, for a block of fields that is no group; `seeds={order:0},{order:1}` gives fields."""
    path, value = str(override.key_or_group), (override.input_line or "").partition("=")[2]
    if override.is_delete() or not isinstance(node, DictConfig) or "${" in value:
        return []
    given = override.value()
    if all(each is None or isinstance(each, dict) for each in getattr(given, "list", [given])):
        return []
    fields = ", ".join(f"{path}.{key!s}" for key in node)
    return [Problem(path, f"is a block of fields, which has no value; its fields: {fields}")]


def swept_groups(choices: list[Override], reference: DictConfig, composer: Composer) -> dict[str, list[str]]:
    """Group -> its choices, of the groups of which a multirun takes several."""
    swept = {str(o.key_or_group): choices_of(o) for o in choices if o.is_sweep_override()}
    parameters = OmegaConf.select(reference, PARAMETERS) or {}
    texts = [f"{key}={value}" for key, value in parameters.items() if composer.options(str(key))]
    # `_bad_parameters` reports the parameters that do not parse.
    listed = [override for text in texts if (override := parse_override(text, [])) is not None]
    return {str(o.key_or_group): choices_of(o) for o in listed} | swept


def choices_with(
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
    references = {choice: reference_of(others, composer, choosing(group, choice)) for choice in swept[group]}
    known = [choice for choice, reference in references.items() if not unknown_key(override, reference)]
    return None if len(known) == len(references) else frozenset((group, choice) for choice in known)


def usable_overrides(overrides: Sequence[str], composer: Composer) -> tuple[list[Problem], Overrides]:
    """Judge each override by itself, so that one bad override does not hide the others."""
    pieces = broken_lists(overrides)
    problems = [problem for _, problem in pieces]
    whole = [text for text in overrides if not any(text in words for words, _ in pieces)]
    parsed = [override for text in whole if (override := parse_override(text, problems)) is not None]
    choices = [override for override in parsed if composer.is_choice(override)]
    accepted = [override for override in choices if not add_problems(problems, unknown_choice(override, composer))]
    # Keys are looked up in what the choices compose to, without values: a bad value must not hide an unknown key.
    reference = reference_of(accepted, composer)
    swept = swept_groups(accepted, reference, composer)
    only_for: dict[str, frozenset[tuple[str, str]]] = {}
    for override in (override for override in parsed if override not in choices):
        path = str(override.key_or_group)
        knowing = choices_with(override, accepted, swept, composer)
        if knowing is not None:
            only_for[path] = knowing
        if knowing or not add_problems(problems, unknown_key(override, reference)):
            accepted.append(override)
    # A later override of the same key, of one value or several to sweep, replaces an earlier one.
    last = {override.get_key_element(): place for place, override in enumerate(accepted) if _replaces_value(override)}
    accepted = [o for place, o in enumerate(accepted) if not _replaces_value(o) or last[o.get_key_element()] == place]
    return problems, Overrides(
        [o.input_line or "" for o in accepted if not o.is_sweep_override()],
        [o.input_line or "" for o in accepted if o.is_sweep_override()],
        {path: knowing for path, knowing in only_for.items() if knowing},
    )
