"""The engine that a configuration describes."""

import importlib.util
from pathlib import Path

from paribus.config.groups.execution import EngineConfig, RayEngineConfig
from paribus.engine.engine import Engine


def open_engine(config: EngineConfig, shared: Path) -> Engine:
    """The engine of `config`; it takes processes, or joins a cluster, at its first map.

    `shared` is a directory that every node of a cluster must see.
    """
    if isinstance(config, RayEngineConfig):
        from paribus.engine.cluster.engine import RayEngine

        return RayEngine(config, shared)
    from paribus.engine.local import LocalEngine

    return LocalEngine(config.workers)


def problems(config: EngineConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of an engine that cannot be opened on this machine."""
    if not isinstance(config, RayEngineConfig):
        return []
    found = []
    if importlib.util.find_spec("ray") is None:
        found.append(("engine.kind", "ray is not installed; pip install 'paribus[ray]', or use engine=local"))
    if config.address is not None and "://" in config.address:
        message = f"{config.address!r} is no host:port; start paribus on a machine of the cluster and say auto"
        found.append(("engine.address", message))
    return found
