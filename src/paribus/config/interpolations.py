"""What values of a configuration may ask OmegaConf for: other values, and the time.

What is resolved is written into records, logs and the tracker, so nothing may come from the environment, where secrets
are. Resolvers that make an expression of a text could ask for it in disguise, so they are refused too.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from omegaconf.errors import GrammarParseError
from omegaconf.grammar.gen.OmegaConfGrammarParser import OmegaConfGrammarParser
from omegaconf.grammar_parser import parse

from paribus.config.schema import kinds_with

ALLOWED = ("oc.select", "oc.dict.keys", "oc.dict.values", "now")
_ENVIRONMENT = "oc.env"
_NOT_FOUND = re.compile(r"Interpolation key '(\w+)\.(\w+)' not found")
_OF_THE_BUDGET = ("budget", "text")


def refused(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of each unresolved value that asks for what it may not."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from refused(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from refused(item, f"{path}[{number}]")
    elif isinstance(value, str) and "${" in value:
        yield from ((path, _message(name, value)) for name in resolvers(value) if name not in ALLOWED)


@cache  # the jobs of a sweep have the same texts, but for what it sweeps
def resolvers(text: str) -> tuple[str, ...]:
    """Names of the resolvers that a text asks, in order; none of one that is no expression, which OmegaConf refuses."""
    try:
        tree = parse(text)
    except GrammarParseError:
        return ()
    return tuple(_asked(tree))


def with_remedy(message: str) -> str:
    """OmegaConf's message; of a key that only other choices of its group have, with which these are."""
    found = _NOT_FOUND.fullmatch(message)
    if found is None or not (kinds := kinds_with(*found.groups())):
        return message
    if found.groups() == _OF_THE_BUDGET:
        return f"{message}: only budget=equal_text has it; give a size such as 500MB, or null"
    return f"{message}: only {found[1]} of kind {' or '.join(kinds)} has it; give a value"


def _asked(node: Any) -> Iterator[str]:
    if isinstance(node, OmegaConfGrammarParser.InterpolationResolverContext):
        yield str(node.resolverName().getText())  # type: ignore[no-untyped-call]
    for child in getattr(node, "children", None) or ():
        yield from _asked(child)


def _message(name: str, value: str) -> str:
    if name == _ENVIRONMENT:
        return f"the value of {value} would be written into records; have the shell put it there, if it may be"
    return f"{value} asks {name}; a value may refer to others, as in ${{seed}}, and ask {', '.join(ALLOWED)}"
