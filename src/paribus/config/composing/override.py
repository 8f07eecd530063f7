"""One override: whether it can be read, what it chooses, and which of several of a key counts."""

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.errors import HydraException

from paribus.config.arguments import quoted, unquoted
from paribus.config.hydra_settings import in_a_line
from paribus.config.validate import Problem


def parse_override(text: str, problems: list[Problem]) -> Override | None:
    """The override in a word; None where it can be none, which is added to the problems."""
    # Line ends and control characters would take the message apart, and the terminal with it.
    shown = text if text.isprintable() else repr(text)
    try:
        parsed = OverridesParser.create().parse_override(text)
    except (HydraException, ValueError) as error:  # ValueError: a number of more digits than Python reads
        told = f"is not a Hydra override: {in_a_line(error)}{_as_text(text)}"
        if "=" not in text and not text.startswith("~"):
            told = "is no override, which is typed NAME=VALUE; paribus explain lists groups and fields"
        problems.append(Problem(shown, told))
        return None
    if not parsed.key_or_group:
        problems.append(Problem(shown, "is not a Hydra override: it names no field and no group"))
        return None
    if parsed.value_type in (ValueType.INTERVAL_SWEEP, ValueType.GLOB_CHOICE_SWEEP):
        problems.append(Problem(str(parsed.key_or_group), f"{text} does not name its values; list them: a,b,c"))
        return None
    if parsed.is_sweep_override() and getattr(parsed.value(), "shuffle", False):
        told = f"{text} has another order whenever it is read, and the first row is what others are compared with"
        problems.append(Problem(str(parsed.key_or_group), f"{told}; list them: a,b,c"))
        return None
    if parsed.is_sweep_override() and not list(parsed.sweep_iterator()):
        problems.append(Problem(str(parsed.key_or_group), f"{text} has no values, and so no run; list them: a,b,c"))
        return None
    return parsed


def _as_text(text: str) -> str:
    """Show how to type the values in quotes; empty if quotes alone do not help."""
    key, _, value = text.partition("=")
    listed = value.startswith("[") and value.endswith("]")
    items = [unquoted(item.strip()) for item in (value[1:-1] if listed else value).split(",")]
    values = ",".join(map(quoted, items))
    typed = f"{key}=[{values}]" if listed else f"{key}={values}"
    if not all(items) or not typed.isprintable() or set(typed) & set('"$`\\!'):  # which a shell reads within quotes
        return ""
    try:
        OverridesParser.create().parse_override(typed)
    except (HydraException, ValueError):
        return ""
    return f'; a text is typed in quotes: "{typed}"'


def choices_of(override: Override) -> list[str]:
    """The options of a group that it names."""
    if override.is_sweep_override():
        return [unquoted(str(value)) for value in override.sweep_string_iterator()]
    value = override.value()
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def last_of_each(overrides: Sequence[Override]) -> list[Override]:
    """Without what a later override of the same key replaces, whether it gives one value or several to sweep."""
    last = {override.get_key_element(): place for place, override in enumerate(overrides) if _sets(override)}
    return [o for place, o in enumerate(overrides) if not _sets(o) or last[o.get_key_element()] == place]


def _sets(override: Override) -> bool:
    """Whether it gives a value to a key that is there, and neither adds nor deletes one."""
    return not (override.is_add() or override.is_force_add() or override.is_delete())


def add_found(problems: list[Problem], found: list[Problem]) -> bool:
    """Add what was found to the problems; whether that was any."""
    problems += found
    return bool(found)
