"""What values of a configuration may ask OmegaConf for: other values, and the time.

What is resolved is written into records, logs and the tracker, so nothing may come from the environment, where secrets
are. Resolvers that make an expression of a text could ask for it in disguise, so they are refused too.
"""

from collections.abc import Iterator
from typing import Any

from omegaconf.errors import GrammarParseError
from omegaconf.grammar.gen.OmegaConfGrammarParser import OmegaConfGrammarParser
from omegaconf.grammar_parser import parse

ALLOWED = ("oc.select", "oc.dict.keys", "oc.dict.values", "now")
_ENVIRONMENT = "oc.env"


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


def resolvers(text: str) -> list[str]:
    """Names of the resolvers that a text asks, in order; none of one that is no expression, which OmegaConf refuses."""
    try:
        tree = parse(text)
    except GrammarParseError:
        return []
    return list(_asked(tree))


def _asked(node: Any) -> Iterator[str]:
    if isinstance(node, OmegaConfGrammarParser.InterpolationResolverContext):
        yield str(node.resolverName().getText())  # type: ignore[no-untyped-call]
    for child in getattr(node, "children", None) or ():
        yield from _asked(child)


def _message(name: str, value: str) -> str:
    if name == _ENVIRONMENT:
        return f"the value of {value} would be written into records; have the shell put it there, if it may be"
    return f"{value} asks {name}; a value may refer to others, as in ${{seed}}, and ask {', '.join(ALLOWED)}"
