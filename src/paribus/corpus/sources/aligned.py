"""The files of a corpus of pairs; `paribus plan` asks for them, so nothing heavy may be imported here."""

from pathlib import Path

from paribus.config.groups.corpus import ParallelCorpus
from paribus.corpus.readers.formats import format_of
from paribus.corpus.sources.paths import resolve
from paribus.errors import ConfigurationError


def sides(config: ParallelCorpus) -> tuple[list[Path], list[Path]]:
    """Files of the sources and of the targets, one of each aligned with one of the other.

    DataError for files that are missing or empty, ConfigurationError for sides that cannot be aligned.
    """
    skips = config.on_invalid == "skip"
    sources = resolve(config.source, "corpus.source", any_suffix=True, skips=skips)
    if config.target is None:
        text = [path for path in sources if record_format(path) == "text"]
        if text:
            raise ConfigurationError(
                f"corpus.target: {text[0]} is text and has no second field; give the files of the targets"
            )
        return sources, sources
    targets = resolve(config.target, "corpus.target", any_suffix=True, skips=skips)
    if len(sources) != len(targets):
        raise ConfigurationError(
            f"corpus.target: {len(targets)} files ({_names(targets)}), but corpus.source has {len(sources)} "
            f"({_names(sources)}); file by file, one belongs to the other"
        )
    return sources, targets


def record_format(path: Path) -> str:
    """jsonl or parquet, or text where a line is a record."""
    format = format_of(path)
    return format.name if format and format.name in ("jsonl", "parquet") else "text"


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths[:5]) + (", ..." if len(paths) > 5 else "")
