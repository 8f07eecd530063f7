"""Hydra's reading and merging of the files of groups, each of them once for all compositions of a command."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import Any

from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository, IConfigRepository
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.default_element import InputDefault, ResultDefault
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf

_HYDRAS = "hydra/"
_EXPERIMENT = "experiment/"
_MERGED = "hydra of these files"
_INTERPOLATION = "${"


class ReadOnce(ConfigRepository):
    """The files of all groups, read and parsed once for all compositions of a command: that takes as long as the rest.

    Nobody may change what it gives (`Loader`).
    """

    def __init__(
        self, path: ConfigSearchPath, read: "dict[tuple[str, ...], ConfigResult | None] | None" = None
    ) -> None:
        super().__init__(path)
        self._path = path
        self._read = {} if read is None else read

    def load_config(self, config_path: str) -> ConfigResult | None:
        """As Hydra's own."""
        key = (config_path, *(source.path for source in self.sources))
        if key not in self._read:
            try:
                self._read[key] = super().load_config(config_path)
            except UnicodeDecodeError as error:
                raise HydraException(f"{config_path}.yaml is no UTF-8 text: {error}") from error
        return self._read[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReadOnce":
        """Hydra copies a repository before it may add places to search; what was read stays in common."""
        return ReadOnce(self._path, self._read)


class Loader(ConfigLoaderImpl):
    """Hydra's loader, which reads each file once and changes nothing of what it read."""

    def __init__(self, path: ConfigSearchPath) -> None:
        super().__init__(path)
        self.repository = ReadOnce(path)
        self._of_hydra = dict[tuple[str, ...], DictConfig]()

    def load_configuration(self, *given: Any, **named: Any) -> DictConfig:
        """As Hydra's own, with a configuration of all choices only where a list of defaults looks one up."""
        with _choices_where_looked_up():
            return super().load_configuration(*given, **named)

    def _load_single_config(self, default: ResultDefault, repo: IConfigRepository) -> ConfigResult:
        """As Hydra's own, whose caller makes the configuration of a file a part of the whole, as it is.

        Hydra copies what belongs to a package, so the rest alone is left to copy here. A file that says nothing is
        refused: it would choose what nobody chose, the defaults of its group or a run without its experiment.
        """
        if isinstance(default, _Merged):
            return ConfigResult(provider="", path="", config=copy.deepcopy(default.config), header={})
        found = super()._load_single_config(default, repo)
        read = repo.load_config(str(default.config_path))
        if read is not None and _says_nothing(read) and not str(default.config_path).startswith(_HYDRAS):
            raise HydraException(_needed(read, str(default.config_path)))
        return replace(found, config=copy.deepcopy(found.config)) if read and found.config is read.config else found

    def _compose_config_from_defaults_list(self, defaults: list[ResultDefault], repo: IConfigRepository) -> DictConfig:
        """As Hydra's own, which begins with what it says of itself: half of the files, and the same for most jobs."""
        first = list(takewhile(lambda default: str(default.config_path).startswith(_HYDRAS), defaults))
        places = (source.path for source in repo.get_sources())
        key = (*places, *(f"{default.config_path} in {default.package}" for default in first))
        if key not in self._of_hydra:
            self._of_hydra[key] = super()._compose_config_from_defaults_list(first, repo)
        merged = _Merged(self._of_hydra[key])
        return super()._compose_config_from_defaults_list([merged, *defaults[len(first) :]], repo)


def _says_nothing(read: ConfigResult) -> bool:
    """Whether a file has neither values nor a list of defaults."""
    others = [one for one in read.defaults_list or [] if not one.is_self()]
    return not others and OmegaConf.is_dict(read.config) and not read.config


def _needed(read: ConfigResult, config_path: str) -> str:
    """Which file says nothing, and what it would say."""
    file = f"{read.path.partition('://')[2]}/{config_path}.yaml"
    if config_path.startswith(_EXPERIMENT):
        return f"{file} says nothing; an experiment gives values, or arms under hydra.sweeper.params, as demo.yaml does"
    return f"{file} says nothing; a file of a group gives the group's fields, such as kind"


class _Merged(ResultDefault):
    """Files that were merged already, in their place in the list of files."""

    def __init__(self, config: DictConfig) -> None:
        super().__init__(config_path=_MERGED)
        self.config = config


@contextmanager
def _choices_where_looked_up() -> Iterator[None]:
    """For each list of defaults Hydra makes a configuration of all choices so far, in which few lists look one up."""
    of_all = defaults_list._create_interpolation_map

    def of_those(overrides: Any, defaults_list: list[InputDefault], self_added: bool) -> DictConfig:
        looked_up = any(default.is_interpolation() or _INTERPOLATION in _group(default) for default in defaults_list)
        return of_all(overrides, defaults_list, self_added) if looked_up else OmegaConf.create()

    defaults_list._create_interpolation_map = of_those
    try:
        yield
    finally:
        defaults_list._create_interpolation_map = of_all


def _group(default: InputDefault) -> str:
    """Of several optional files of a group Hydra looks choices up in the group's name too."""
    return getattr(default, "group", None) or ""
