"""What Hydra makes of the overrides of one command; jobs that choose the same share its reading of the files."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import hydra
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.default_element import GroupDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from paribus.config.arms import ARM, CHOSEN
from paribus.config.hydra_settings import refused_settings


@dataclass(frozen=True)
class Composed:
    """What the overrides of a job make, apart from what only Hydra reads; not to be changed.

    No value can refer to Hydra's own, which a job has no longer when it runs.
    """

    values: DictConfig
    choices: Mapping[str, Any]
    """Group -> option of all groups, Hydra's own as well."""
    refused: tuple[tuple[str, str], ...]
    """(path, what is wrong) of settings of Hydra that may not be there."""


class Composer:
    """Hydra composes the choices of groups first and then sets the values: here on a copy of the former."""

    def __init__(self) -> None:
        self._known = dict[str, list[str]]()
        self._parsed = dict[str, Override]()
        self._whole = dict[tuple[str, ...], DictConfig]()
        self._chosen = dict[tuple[str, ...], Composed]()

    def options(self, group: str) -> list[str]:
        """The choices of a group; none for what is no group.

        A file whose name begins with an underscore is what other files of its directory have in common, and no choice.
        """
        if group not in self._known:
            try:
                found = GlobalHydra.instance().config_loader().get_group_options(group)
            except OSError:  # a name that no directory can have
                found = []
            self._known[group] = [name for name in found if not name.startswith("_")]
        return self._known[group]

    def nested_options(self, group: str) -> list[str]:
        """The choices of a group and of the groups in it, these with their path: `lbpe/table_1`."""
        inner = GlobalHydra.instance().config_loader().get_group_options(group, ObjectType.GROUP)
        below = [f"{name}/{option}" for name in inner for option in self.nested_options(f"{group}/{name}")]
        return [*self.options(group), *below]

    def chosen_by(self, arm: str) -> dict[str, str] | None:
        """Group -> option of what an arm chooses in the groups that arms stand for; None for what is not read here."""
        loader = GlobalHydra.instance().config_loader()
        assert isinstance(loader, ConfigLoaderImpl)
        try:
            found = loader.repository.load_config(f"{ARM}/{arm}")
        except HydraException:  # told by whoever composes the whole
            return None
        in_place = found is not None and found.header.get("package") == "_global_"
        listed = (found.defaults_list or []) if found and in_place else []
        overridden = [one for one in listed if isinstance(one, GroupDefault) and one.override]
        groups = {(one.group or "").strip("/"): str(one.value) for one in overridden}
        return {group: option for group, option in groups.items() if group in CHOSEN}

    def is_choice(self, override: Override) -> bool:
        """Whether it chooses in a group, instead of setting a value."""
        return bool(self.options(str(override.key_or_group)))

    def whole(self, overrides: Sequence[str]) -> DictConfig:
        """What `hydra.compose` makes of them with its own block, and raises; not to be changed."""
        files, values = self._apart(overrides)
        return _with(values, self._read(files))

    def job(self, overrides: Sequence[str]) -> Composed:
        """The same in its parts.

        Reading files takes Hydra tenths of a second and setting values none, and a sweep has hundreds of jobs that
        differ in values alone. The block of Hydra, more than half of the whole, is the same for all of them.
        """
        files, values = self._apart(overrides)
        if files not in self._chosen:
            self._chosen[files] = _in_parts(self._read(files))
        chosen = self._chosen[files]
        return replace(chosen, values=_with(values, chosen.values))

    def _read(self, files: tuple[str, ...]) -> DictConfig:
        if files not in self._whole:
            self._whole[files] = hydra.compose("config", overrides=list(files), return_hydra_config=True)
        return self._whole[files]

    def _apart(self, overrides: Sequence[str]) -> tuple[tuple[str, ...], list[Override]]:
        """What decides which files are read, and the values that are set afterwards."""
        parsed = [self._parse(text) for text in overrides]
        if any(override.key_or_group == "hydra.searchpath" for override in parsed):  # has groups unknown to us
            return tuple(overrides), []
        files = [override for override in parsed if self._is_read_first(override)]
        # Which group is chosen first makes no difference, but in which order files are added to all others.
        chosen = {override.get_key_element(): str(override.input_line) for override in files if self._chooses(override)}
        added = [str(override.input_line) for override in files if not self._chooses(override)]
        return (*sorted(chosen.values()), *added), [
            override for override in parsed if not self._is_read_first(override)
        ]

    def _parse(self, text: str) -> Override:
        if text not in self._parsed:
            (self._parsed[text],) = OverridesParser.create().parse_overrides([text])
        return self._parsed[text]

    def _chooses(self, override: Override) -> bool:
        """Whether it takes another choice of a group that has one."""
        changes = override.is_add() or override.is_force_add() or override.is_delete()
        return self.is_choice(override) and not changes

    def _is_read_first(self, override: Override) -> bool:
        of_hydra = str(override.key_or_group).split(".", maxsplit=1)[0] == "hydra"
        return of_hydra or self.is_choice(override)


def values_of(cfg: DictConfig) -> DictConfig:
    """A copy of a configuration without Hydra's block; the keys that it has are all that there are."""
    values = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    OmegaConf.set_struct(values, True)
    return values


def _in_parts(whole: DictConfig) -> Composed:
    settings = OmegaConf.to_container(whole.hydra, resolve=False)
    choices = OmegaConf.select(whole, "hydra.runtime.choices")
    return Composed(values_of(whole), choices, tuple(refused_settings(settings)))


def _with(values: Sequence[Override], config: DictConfig) -> DictConfig:
    if not values:
        return config
    changed = copy.deepcopy(config)
    ConfigLoaderImpl._apply_overrides_to_config(list(values), changed)
    return changed
