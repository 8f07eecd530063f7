"""What may not be said in Hydra's own block `hydra`: names of code, and directories named by the environment.

Hydra calls what its callbacks, its plugins and its logging name. A configuration, which may be somebody else's file,
chooses among the plugins that are installed, and names nothing else.
"""

from collections.abc import Iterator, Mapping
from typing import Any

PLUGINS = ("hydra_plugins.", "hydra._internal.core_plugins.")
_DIRECTORIES = ("hydra.run", "hydra.sweep")
_PLUGGED = ("hydra.launcher._target_", "hydra.sweeper._target_")


def refused_settings(block: Any, path: str = "hydra") -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of everything in Hydra's unresolved configuration that may not be there."""
    items = block.items() if isinstance(block, Mapping) else enumerate(block) if isinstance(block, list) else ()
    for key, value in items:
        where = f"{path}.{key}"
        if key in ("_target_", "()") and not (where in _PLUGGED and str(value).startswith(PLUGINS)):
            yield where, f"{value!r} names code, which no configuration may do; choose hydra/launcher=... by its name"
        elif key == "class" and not str(value).startswith("logging."):
            yield where, f"{value!r} is no class of Python's logging"
        elif where == "hydra.job.chdir" and value:
            yield where, "would look for relative paths in a directory of the job; leave it out"
        elif path in _DIRECTORIES and "oc.env" in str(value):
            yield (
                where,
                f"{value!r} would name a directory by the environment; have the shell put it there",
            )
        yield from refused_settings(value, where)


def in_a_line(error: Exception) -> str:
    """What Hydra or OmegaConf say of an error, without what they say of their own objects."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return " ".join(line for line in lines if not line.startswith(("full_key", "object_type", "Set the env")))
