"""Options of the verbs that take no configuration: `name=value`, each of a short list of names."""

import difflib
from collections.abc import Collection, Sequence

from paribus.errors import ConfigurationError


def read_options(arguments: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Name -> value of each argument; ConfigurationError for an unknown, empty or repeated one."""
    options: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in known:
            taken = ", ".join(f"{key}=..." for key in known)
            raise ConfigurationError(f"{argument!r} is not taken here, but {taken}{_near(argument, known)}")
        if not value:
            raise ConfigurationError(f"{name}= names no value; leave it out or give one")
        if options.get(name, value) != value:
            raise ConfigurationError(f"{name} is given twice, as {options[name]!r} and as {value!r}")
        options[name] = value
    return options


def _near(argument: str, known: Collection[str]) -> str:
    """The option that was probably meant, with the value that was given."""
    name, equals, value = argument.lstrip("-").partition("=")
    name = name.replace("-", "_")
    close = [key for key in known if name and key.endswith(f".{name}")]
    close += difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}={value if equals else '...'}?" if close else ""
