"""What leaves Hydra: plain data, of which a configuration is built."""

from collections.abc import Callable, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from paribus.config.interpolations import refused
from paribus.config.schema import RunConfig
from paribus.config.validate import Problem, refuse

Build = Callable[[Mapping[str, Any]], RunConfig]
"""From nested plain data to a configuration; ConfigurationError as `paribus.config.validate.refuse` has it."""


def plain(values: DictConfig) -> dict[str, Any]:
    """A composed configuration resolved; ConfigurationError where a value asks for what it may not."""
    if forbidden := [Problem(*found) for found in refused(OmegaConf.to_container(values, resolve=False))]:
        raise refuse(forbidden)
    plain = OmegaConf.to_container(values, resolve=True, throw_on_missing=False)
    if not isinstance(plain, dict):
        raise TypeError("the composed configuration is not a mapping")
    return {str(key): value for key, value in plain.items()}
