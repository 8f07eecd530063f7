"""The table of a whole acceptance, for people."""

from collections.abc import Iterable, Mapping
from typing import Any


def table(outcomes: Iterable[Mapping[str, Any]], code: str) -> str:
    """Markdown: a line a step with its numbers, and under it what is wrong; the state of one by other code says so."""
    lines = ["| step | state | s | numbers |", "|---|---|---:|---|"]
    problems: list[str] = []
    for outcome in outcomes:
        numbers = "; ".join(f"{name} {_shown(value)}" for name, value in outcome["numbers"].items())
        other = outcome["seconds"] and outcome.get("code") != code
        state = outcome["state"] + (", by other code" if other else "")
        lines.append(f"| {outcome['step']} | {state} | {outcome['seconds']:.0f} | {numbers} |")
        problems += [f"- {outcome['step']}: {line}" for line in outcome["wrong"]]
    return "\n".join([*lines, *([""] if problems else []), *problems]) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return str(value)
