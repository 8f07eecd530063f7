"""Where real text for tests is: beside the checkout, where there is more of it, else in `tests/data`."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import zstandard

TESTS = Path(__file__).resolve().parents[1]
SHARED = TESTS.parents[1] / "shared" / "data"


@dataclass(frozen=True)
class RealData:
    """Files of each kind of text."""

    english: Path
    """Pieces of prose and documentation, some of one book or page: `.jsonl.zst` with `id`, `text`."""
    declarations: Path
    """The Universal Declaration of Human Rights in many languages: `.jsonl.zst` with `id`, `text`."""
    segmented: Path
    """Chinese sentences, words separated by two spaces: `.seg.txt.gz`."""
    benchmarks: Path
    """Directory of benchmark files."""

    def english_texts(self, count: int) -> list[str]:
        """The first texts."""
        return list(islice(texts_of(self.english), count))

    def declaration_texts(self, count: int | None = None) -> list[str]:
        """The declaration, a text a language."""
        return list(islice(texts_of(self.declarations), count))

    def chinese_sentences(self, count: int) -> list[str]:
        """Sentences without what separates their words."""
        with gzip.open(self.segmented, "rt", encoding="utf-8") as lines:
            return ["".join(line.split()) for line in islice(lines, count)]


def texts_of(path: Path) -> Iterator[str]:
    """The texts of a `.jsonl.zst` file."""
    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


OWN = RealData(
    english=TESTS / "data/corpora/english.jsonl.zst",
    declarations=TESTS / "data/corpora/declarations.jsonl.zst",
    segmented=TESTS / "data/corpora/chinese_words.seg.txt.gz",
    benchmarks=TESTS / "data/benchmarks",
)


def real_data() -> RealData:
    """The larger texts where they are, else those of the repository."""
    if not SHARED.is_dir():
        return OWN
    corpora = SHARED / "corpora"
    return RealData(
        english=corpora / "english_mixed.jsonl.zst",
        declarations=corpora / "udhr_multilingual.jsonl.zst",
        segmented=corpora / "sighan2005_msr_test_gold.seg.txt.gz",
        benchmarks=SHARED / "benchmarks",
    )
