"""The texts of an item, as they were asked."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ItemText:
    """What was asked in one item; of a document that is scored whole, its text alone."""

    question: str = ""
    """What stands before the answer, without examples; of a pair the source, of a document all of it."""
    choices: tuple[str, ...] = ()
    right: int | None = None
    """Index of the right choice."""
    ending: str = ""
    """What follows each choice, where choices fill a blank."""
    accepted: tuple[str, ...] = ()
    """The text that should follow, the reference of a translation, or all answers that count as right."""


NO_TEXT = ItemText()
Texts = Mapping[str, ItemText]
"""By item."""
