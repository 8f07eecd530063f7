"""Tokens as strings, the form in which other libraries keep vocabularies."""

from collections import Counter

from paribus.tokenization.vocabulary.units import byte_characters
from paribus.tokenization.vocabulary.vocabulary import Vocabulary, VocabularyEntry

CONTINUATION_MARK = "## "
"""Before the name of a token that stands inside a word. Whitespace in it keeps it apart from every text, for words
between whitespace are all that is looked up; with `##` alone, the word `##ing` would be taken for the inside of one."""


def token_names(vocabulary: Vocabulary) -> list[str]:
    """A string for each id: GPT-2's characters for bytes, `<0xE2>` for fallback bytes, else the text.

    Two ids may have the same name, such as a special token and a word spelled like it.
    """
    table = byte_characters() if vocabulary.unit == "byte" else None
    return [_name(entry, table) for entry in vocabulary.by_id]


def distinct_names(vocabulary: Vocabulary) -> list[str]:
    """`token_names` where an ordinary token that shares its name with another has its id written behind it."""
    names = token_names(vocabulary)
    count = Counter(names)
    return [
        name if count[name] == 1 or entry.kind in ("special", "unknown") else f"{name}\ufdd0{entry.id}"
        for name, entry in zip(names, vocabulary.by_id, strict=True)
    ]


def _name(entry: VocabularyEntry, table: list[str] | None) -> str:
    if entry.kind in ("special", "unknown"):
        return entry.bytes.decode("utf-8")
    mark = CONTINUATION_MARK if entry.continuation else ""
    if entry.kind == "fallback":
        return f"{mark}<0x{entry.bytes[0]:02X}>"
    if table is not None:
        return mark + "".join([table[value] for value in entry.bytes])
    return mark + entry.bytes.decode("utf-8")
