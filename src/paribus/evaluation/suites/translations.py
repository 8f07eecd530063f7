"""Test sets of translation: pairs that an encoder-decoder translates, in the direction that their name says."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Hub, Record, text
from paribus.evaluation.suites.files import DataFile, read_lines
from paribus.evaluation.tasks.heldout_pairs import TextPair

TRANSLATION = "translation"
"""The task of held-out pairs, which is no set of its own."""


@dataclass(frozen=True)
class TranslationSet:
    """Pairs read from `<data>/<directory>/<split>.jsonl[.gz|.zst]`, by two languages as fields of the record."""

    name: str
    source: str
    """Language that is read, by its code."""
    target: str
    """Language that is written."""
    directory: str
    hub: Hub | None = None
    split: str = "test"
    """Split that is scored, and its name on the hub."""
    others: tuple[str, ...] = ()
    """Other names that its file goes by."""

    @property
    def file(self) -> DataFile:
        """Where its pairs lie."""
        names = tuple(f"{name}.jsonl" for name in (self.split, *self.others))
        return DataFile(f"task {self.name}", self.directory, names, "; evaluation.source=hub fetches it")

    def reverses(self, other: "TranslationSet") -> bool:
        """Whether it has the pairs of another set in the other direction."""
        return (self.directory, self.source) == (other.directory, other.target)


def _both_ways(corpus: str, one: str, other: str, **about: Any) -> tuple[TranslationSet, TranslationSet]:
    """A set in its own direction and in the other, from the same file."""
    directory = f"{corpus}_{one}_{other}"
    return (
        TranslationSet(directory, one, other, directory, **about),
        TranslationSet(f"{corpus}_{other}_{one}", other, one, directory, **about),
    )


_WMT14_DE = Hub("wmt/wmt14", train=False, files="de-en/{split}-*.parquet")
_WMT14_FR = Hub("wmt/wmt14", train=False, files="fr-en/{split}-*.parquet")
_MULTI30K = Hub("bentrevett/multi30k", train=False)
TRANSLATIONS: Mapping[str, TranslationSet] = MappingProxyType(
    {
        chosen.name: chosen
        for chosen in (
            *_both_ways("wmt14", "en", "de", hub=_WMT14_DE),
            *_both_ways("wmt14", "en", "fr", hub=_WMT14_FR),
            *_both_ways("multi30k", "en", "de", hub=_MULTI30K, others=("test_2016_flickr",)),
        )
    }
)


def read_translations(path: Path, chosen: TranslationSet) -> list[TextPair]:
    """All pairs of a file in order, named `<split>/<line>`. DataError names file and line."""
    return list(read_lines(path, f"task {chosen.name}", lambda name, record: TextPair(name, *_sides(record, chosen))))


def _sides(record: Record, chosen: TranslationSet) -> tuple[str, str]:
    """Source and target, of `translation` as the hub has it or of the record itself."""
    block = record.get("translation", record)
    if not isinstance(block, Mapping):
        raise DataError(
            f"field `translation` must hold the texts {chosen.source} and {chosen.target}, not {type(block).__name__}"
        )
    return text(block, chosen.source), text(block, chosen.target)
