"""Hydra for the length of a command: composing its jobs, launching them, and limits of what files may ask of it."""

import copy
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.callbacks import Callbacks
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository, IConfigRepository
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.default_element import GroupDefault, ResultDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from hydra.types import HydraContext, RunMode
from hydra.version import setbase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import GrammarParseError
from omegaconf.grammar.gen.OmegaConfGrammarParser import OmegaConfGrammarParser
from omegaconf.grammar_parser import parse

from paribus.config.arguments import Command, configuration_directory, override_key
from paribus.config.fields import ARM, CHOSEN
from paribus.config.schema import RunConfig, kinds_with
from paribus.errors import ConfigurationError, Problem

Build = Callable[[Mapping[str, Any]], RunConfig]
"""Function from nested plain data to a configuration; ConfigurationError with every problem."""
_HYDRAS = "hydra/"
ALLOWED = ("oc.select", "oc.dict.keys", "oc.dict.values", "now")
_NOT_FOUND = re.compile(r"Interpolation key '(\w+)\.(\w+)' not found")
PLUGINS = ("hydra_plugins.", "hydra._internal.core_plugins.")
_DIRECTORIES = ("hydra.run", "hydra.sweep")
_PLUGGED = ("hydra.launcher._target_", "hydra.sweeper._target_")


@contextmanager
def initialized(command: Command) -> Iterator[Hydra]:
    """Hydra with our groups and those of --config-dir, as its own command line would have them."""
    setbase("1.3")
    path = create_config_search_path(str(configuration_directory()))
    for directory in command.config_directories:
        if not Path(directory).is_dir():
            raise ConfigurationError(
                Problem("--config-dir", f"{directory} is no directory; name the one that holds your groups")
            )
        path.prepend("command-line", f"file://{Path(directory).resolve()}", anchor="schema")
    try:
        hydra_app = Hydra("paribus", Loader(path))
        GlobalHydra.instance().initialize(hydra_app)
        yield hydra_app
    finally:
        GlobalHydra.instance().clear()


# What is resolved is written into records, logs and the tracker, so nothing may come from the environment, where
# secrets are. Resolvers that make an expression of a text could ask for it in disguise, so they are refused too.
def refused(value: Any, path: str = "") -> Iterator[Problem]:
    """Yield a problem for each resolver in an unresolved value that is not allowed."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from refused(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from refused(item, f"{path}[{number}]")
    elif isinstance(value, str) and "${" in value:
        for name in (name for name in resolvers(value) if name not in ALLOWED):
            message = f"{value} asks {name}; a value may refer to others, as in ${{seed}}, and ask {', '.join(ALLOWED)}"
            if name == "oc.env":
                message = (
                    f"the value of {value} would be written into records; have the shell put it there, if it may be"
                )
            yield Problem(path, message)


@dataclass(frozen=True)
class Composed:
    """Configuration of a job without Hydra's own block, to which no value can refer; not to be changed."""

    values: DictConfig
    choices: Mapping[str, Any]
    """Group -> option of all groups, Hydra's own as well."""
    refused: tuple[Problem, ...]
    """Problems of settings of Hydra that are not allowed."""


class Composer:
    """Composes jobs as Hydra does, choices of groups first and then values, which are set on a copy of the former."""

    def __init__(self) -> None:
        self._options = dict[str, list[str]]()
        self._parsed = dict[str, Override]()
        self._compositions = dict[tuple[str, ...], DictConfig]()
        self._jobs = dict[tuple[str, ...], Composed]()

    def options(self, group: str) -> list[str]:
        """The choices of a group; files that begin with an underscore are parts of others, and none."""
        if group not in self._options:
            try:
                names = GlobalHydra.instance().config_loader().get_group_options(group)
            except OSError:  # a name that no directory can have
                names = []
            self._options[group] = [name for name in names if not name.startswith("_")]
        return self._options[group]

    def nested_options(self, group: str) -> list[str]:
        """The choices of a group and of the groups in it, these with their path: `lbpe/table_1`."""
        inner = GlobalHydra.instance().config_loader().get_group_options(group, ObjectType.GROUP)
        below = [f"{name}/{option}" for name in inner for option in self.nested_options(f"{group}/{name}")]
        return [*self.options(group), *below]

    def chosen_by(self, arm: str) -> dict[str, str] | None:
        """Option by group that an arm chooses in the groups it stands for; None where its file cannot be loaded."""
        loader = GlobalHydra.instance().config_loader()
        assert isinstance(loader, ConfigLoaderImpl)
        try:
            file = loader.repository.load_config(f"{ARM}/{arm}")
        except HydraException:  # reported by whoever composes the job
            return None
        defaults = (file.defaults_list or []) if file and file.header.get("package") == "_global_" else []
        overridden = [entry for entry in defaults if isinstance(entry, GroupDefault) and entry.override]
        groups = {(entry.group or "").strip("/"): str(entry.value) for entry in overridden}
        return {group: option for group, option in groups.items() if group in CHOSEN}

    def is_choice(self, override: Override) -> bool:
        """True if it chooses in a group, instead of setting a value."""
        return bool(self.options(str(override.key_or_group)))

    def whole(self, overrides: Sequence[str]) -> DictConfig:
        """Result of `hydra.compose` with its own block, or what it raises; not to be changed."""
        files, values = self._split_overrides(overrides)
        return _with_values(values, self._read(files))

    def job(self, overrides: Sequence[str]) -> Composed:
        """Compose a job; files, which take Hydra 0.1 s, are read once for all jobs that differ in values alone."""
        files, values = self._split_overrides(overrides)
        if files not in self._jobs:
            whole = self._read(files)
            settings = OmegaConf.to_container(whole.hydra, resolve=False)
            choices = OmegaConf.select(whole, "hydra.runtime.choices")
            self._jobs[files] = Composed(values_of(whole), choices, tuple(check_hydra_settings(settings)))
        chosen = self._jobs[files]
        return replace(chosen, values=_with_values(values, chosen.values))

    def _read(self, files: tuple[str, ...]) -> DictConfig:
        if files not in self._compositions:
            self._compositions[files] = hydra.compose("config", overrides=list(files), return_hydra_config=True)
        return self._compositions[files]

    def _split_overrides(self, overrides: Sequence[str]) -> tuple[tuple[str, ...], list[Override]]:
        parsed = [self._parse(text) for text in overrides]
        if any(override.key_or_group == "hydra.searchpath" for override in parsed):  # has groups unknown to us
            return tuple(overrides), []
        chosen: dict[str, str] = {}
        added, values = [], []
        for override in parsed:
            of_hydra = str(override.key_or_group).split(".", maxsplit=1)[0] == "hydra"
            changes = override.is_add() or override.is_force_add() or override.is_delete()
            if self.is_choice(override) and not changes:
                chosen[override.get_key_element()] = str(override.input_line)
            elif of_hydra or self.is_choice(override):
                added.append(str(override.input_line))
            else:
                values.append(override)
        # The order of choices makes no difference, but that of files added to all others does.
        return (*sorted(chosen.values()), *added), values

    def _parse(self, text: str) -> Override:
        if text not in self._parsed:
            (self._parsed[text],) = OverridesParser.create().parse_overrides([text])
        return self._parsed[text]


def values_of(cfg: DictConfig) -> DictConfig:
    """A copy of a configuration without Hydra's block; no key can be added to it."""
    values = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    OmegaConf.set_struct(values, True)
    return values


def _with_values(values: Sequence[Override], config: DictConfig) -> DictConfig:
    if not values:
        return config
    changed = copy.deepcopy(config)
    ConfigLoaderImpl._apply_overrides_to_config(list(values), changed)
    return changed


def run_with_hydra(
    command: Command, jobs: Sequence[Sequence[str]], build: Build, function: Callable[[RunConfig], None]
) -> None:
    """Call `function(config)` once a job, given as its overrides, with the launcher that the command names.

    `build` makes the configuration where the job runs, maybe in another process, as it did for the command. Whatever
    goes wrong there is raised, also where only one of several jobs was lost.
    """

    def task(cfg: DictConfig) -> None:
        function(build(plain(values_of(cfg))))

    with initialized(command) as hydra_app:
        loader = hydra_app.config_loader
        # Of the first job: settings of the launcher are those of the command, and so of all its jobs.
        config = loader.load_configuration("config", list(jobs[0]), RunMode.MULTIRUN)
        # The launcher adds those of Hydra itself again.
        overrides = [[text for text in job if not override_key(text).startswith(("hydra.", "hydra/"))] for job in jobs]
        callbacks = Callbacks(config)
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=loader, callbacks=callbacks), task_function=task, config=config
        )
        batch_size = OmegaConf.select(config, "hydra.sweeper.max_batch_size") or len(jobs)
        for first in range(0, len(jobs), batch_size):
            returned = launcher.launch(overrides[first : first + batch_size], initial_job_idx=first)
            # Reading a value raises what the job raised; launchers themselves keep silent about that.
            _ = [job.return_value for job in returned]


def show_with_hydra(command: Command) -> None:
    """Hydra's own --help, --cfg, --info, shell completion: print and return."""
    main = hydra.main(config_path=str(configuration_directory()), config_name="config", version_base="1.3")
    saved = sys.argv
    sys.argv = ["paribus", *command.shown_by_hydra]
    try:
        main(lambda cfg: None)()
    finally:
        sys.argv = saved


class ReadOnce(ConfigRepository):
    """Files of all groups, read and parsed once for all compositions of a command; nobody may change what it gives."""

    def __init__(self, path: ConfigSearchPath) -> None:
        super().__init__(path)
        self._path = path
        self._read: dict[tuple[str, ...], ConfigResult | None] = {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Load a file as Hydra does, each one once."""
        key = (config_path, *(source.path for source in self.sources))
        if key not in self._read:
            try:
                self._read[key] = super().load_config(config_path)
            except UnicodeDecodeError as error:
                raise HydraException(f"{config_path}.yaml is no UTF-8 text: {error}") from error
        return self._read[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReadOnce":
        """Hydra copies a repository before it may add places to search; what was read stays in common."""
        copied = ReadOnce(self._path)
        copied._read = self._read
        return copied


class Loader(ConfigLoaderImpl):
    """Hydra's loader, which reads each file once and changes nothing of what it read."""

    def __init__(self, path: ConfigSearchPath) -> None:
        super().__init__(path)
        self.repository = ReadOnce(path)

    def _load_single_config(self, default: ResultDefault, repo: IConfigRepository) -> ConfigResult:
        """Copy what Hydra loads, since its caller changes it; refuse a file without values and choices."""
        loaded, path = super()._load_single_config(default, repo), str(default.config_path)
        read = repo.load_config(path)
        defaults = [entry for entry in (read and read.defaults_list) or [] if not entry.is_self()]
        empty = read is not None and not defaults and OmegaConf.is_dict(read.config) and not read.config
        if read is not None and empty and not path.startswith(_HYDRAS):
            needed = "a file of a group gives the group's fields, such as kind"
            if path.startswith("experiment/"):
                needed = "an experiment gives values, or arms under hydra.sweeper.params, as demo.yaml does"
            raise HydraException(f"{read.path.partition('://')[2]}/{path}.yaml says nothing; {needed}")
        return replace(loaded, config=copy.deepcopy(loaded.config)) if read and loaded.config is read.config else loaded


def plain(values: DictConfig) -> dict[str, Any]:
    """Resolve a composed configuration; ConfigurationError where a value asks a resolver that is not allowed."""
    if forbidden := [*refused(OmegaConf.to_container(values, resolve=False))]:
        raise ConfigurationError(*forbidden)
    resolved = OmegaConf.to_container(values, resolve=True, throw_on_missing=False)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


@cache  # the jobs of a sweep have the same texts, but for what it sweeps
def resolvers(text: str) -> tuple[str, ...]:
    """Names of the resolvers that a text asks, in order; none for a malformed expression, which OmegaConf refuses."""
    try:
        tree = parse(text)
    except GrammarParseError:
        return ()
    return tuple(_resolver_names(tree))


def with_remedy(message: str) -> str:
    """OmegaConf's message; for a key that only other kinds of its group have, with these kinds."""
    match = _NOT_FOUND.fullmatch(message)
    if match is None or not (kinds := kinds_with(*match.groups())):
        return message
    if match.groups() == ("budget", "text"):
        return f"{message}: only budget=equal_text has it; give a size such as 500MB, or null"
    return f"{message}: only {match[1]} of kind {' or '.join(kinds)} has it; give a value"


def _resolver_names(node: Any) -> Iterator[str]:
    if isinstance(node, OmegaConfGrammarParser.InterpolationResolverContext):
        yield str(node.resolverName().getText())  # type: ignore[no-untyped-call]
    for child in getattr(node, "children", None) or ():
        yield from _resolver_names(child)


# Hydra calls what its callbacks, its plugins and its logging name. A configuration, which may be somebody else's file,
# chooses among the plugins that are installed, and names nothing else.
def check_hydra_settings(block: Any, path: str = "hydra") -> Iterator[Problem]:
    """Yield a problem for each setting in Hydra's unresolved configuration that is not allowed."""
    items = block.items() if isinstance(block, Mapping) else enumerate(block) if isinstance(block, list) else ()
    for key, value in items:
        where = f"{path}.{key}"
        if key in ("_target_", "()") and not (where in _PLUGGED and str(value).startswith(PLUGINS)):
            message = "names code, which no configuration may do; choose hydra/launcher=... by its name"
            yield Problem(where, f"{value!r} {message}")
        elif key == "class" and not str(value).startswith("logging."):
            yield Problem(where, f"{value!r} is no class of Python's logging")
        elif where == "hydra.job.chdir" and value:
            yield Problem(where, "would look for relative paths in a directory of the job; leave it out")
        elif path in _DIRECTORIES and "oc.env" in str(value):
            yield Problem(where, f"{value!r} would name a directory by the environment; have the shell put it there")
        yield from check_hydra_settings(value, where)


def in_a_line(error: Exception) -> str:
    """Message of an error of Hydra or OmegaConf, without what it says of their own objects."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return " ".join(line for line in lines if not line.startswith(("full_key", "object_type", "Set the env")))
