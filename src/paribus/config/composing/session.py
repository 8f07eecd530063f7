"""Hydra for the length of a command, with the groups of paribus and of the user."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.version import setbase

from paribus.config.arguments import Command
from paribus.config.composing.loader import Loader
from paribus.config.reference.files import configuration_directory
from paribus.config.validate import Problem, refuse


@contextmanager
def initialized(command: Command) -> Iterator[Hydra]:
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
