"""The stage `corpus`: reads the source, splits it and writes the corpus artefact."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, ParallelCorpus, PydocsCorpus
from paribus.corpus.artifact import SPLITS, CorpusWriter, split_of
from paribus.corpus.census import Census
from paribus.corpus.reading import Read, Reading
from paribus.corpus.sample import Sample, of_share, of_size
from paribus.corpus.separation import Drawn, separate
from paribus.corpus.sources.distributions import versions
from paribus.corpus.sources.files import FilesSource
from paribus.corpus.sources.huggingface import HuggingFaceSource
from paribus.corpus.sources.parallel import ParallelSource
from paribus.corpus.sources.paths import first_of
from paribus.corpus.sources.pydocs import PydocsSource
from paribus.corpus.sources.source import Skipped, Source
from paribus.engine import Engine
from paribus.errors import DataError
from paribus.native.loader import compile_kernels
from paribus.native.registry import SHINGLES
from paribus.stage import JSON, StageContext

SKIPPED_FILE = "skipped.jsonl"


def build(context: StageContext) -> dict[str, JSON]:
    """Write `train/`, `heldout/` and, where something was left out, `skipped.jsonl`; count all of it.

    The result has `documents`, `bytes` (UTF-8), the same a split and of what `corpus.sample` leaves out (`unsampled`),
    `exact_duplicates`, `skipped` by reason, `digest`
    (SHA-256 of ids and texts in corpus order, and of which moved), `stopped_at` (`limit` or `end`), `overlap` of the
    held-out documents with training and what was `moved` there, `packages` of `pydocs` and, of `parallel`, the
    `target_bytes` of each split, which its `bytes` include.
    DataError where a record cannot be read or a split would be empty.
    """
    config = context.config.corpus
    compile_kernels(SHINGLES, context.report)
    source, sample = open_source(config, context.engine, context.work), _sample(context)
    census, drawn, pairs = Census(), Drawn(), isinstance(config, ParallelCorpus)
    reading = Reading(source, config.limit, context.report, "reading")
    with CorpusWriter(context.output, heldout=config.heldout, pairs=pairs) as writer:
        _Copy(config, writer, census, drawn, context.output / SKIPPED_FILE, sample).run(reading)
    if isinstance(source, FilesSource) and source.without_documents:
        named = "; ".join(first_of(source.without_documents))
        context.report.message(f"files without a document ({SKIPPED_FILE} says why): {named}")
    _require_both_splits(config, source, writer, census)
    separated = separate(context, drawn)
    census.move(separated.moved)
    result = census.result() | {"stopped_at": "end" if reading.complete else "limit", "overlap": separated.overlap}
    result["moved"] = {"documents": len(separated.moved), "bytes": separated.bytes}
    for split in SPLITS:
        sign = 1 if split == "train" else -1
        documents = writer.count(split) + sign * len(separated.moved)
        target_bytes = writer.target_bytes(split) + sign * separated.target_bytes
        targets: dict[str, JSON] = {"target_bytes": target_bytes} if pairs else {}
        result[split] = {"documents": documents, "bytes": writer.bytes(split) + sign * separated.bytes} | targets
    return result | ({"packages": dict(versions(config.packages))} if isinstance(config, PydocsCorpus) else {})


def open_source(config: CorpusConfig, engine: Engine, work: Path) -> Source:
    """The source that `config` describes; what its workers read ahead lies in directory `work`."""
    match config:
        case PydocsCorpus():
            return PydocsSource(config, engine)
        case FilesCorpus():
            return FilesSource(config, engine, work)
        case HuggingFaceCorpus():
            return HuggingFaceSource(config)
        case ParallelCorpus():
            return ParallelSource(config)


def _sample(context: StageContext) -> Sample | None:
    """The sample that is asked for; None keeps all. A size takes a pass over the source of its own."""
    config = context.config.corpus
    match config.sample:
        case None:
            return None
        case int(size):
            source = open_source(config, context.engine, context.work)
            reading = Reading(source, config.limit, context.report, "choosing")
            return of_size(size, _training(config, reading), config.sample_seed)
        case share:
            return of_share(share, config.sample_seed)


def _training(config: CorpusConfig, reading: Reading) -> Iterator[Read]:
    return (read for read in reading if isinstance(read, Read) and _is_training(config, read))


def _is_training(config: CorpusConfig, read: Read) -> bool:
    return split_of(read.text, read.item.group, config.heldout) == "train"


@dataclass(frozen=True)
class _Copy:
    """Copies what is read of a source into a corpus, without the training documents that are not in `sample`."""

    config: CorpusConfig
    writer: CorpusWriter
    census: Census
    drawn: Drawn
    skipped: Path
    sample: Sample | None

    def run(self, reading: Reading) -> None:
        for read in reading:
            if isinstance(read, Skipped):
                self._skip(read)
            elif self.sample and _is_training(self.config, read) and not self.sample.keeps(read.text):
                self.census.leave_out(read.size)
            else:
                self._add(read)

    def _add(self, read: Read) -> None:
        item = read.item
        self.census.add(item.id.encode(), read.text, read.target)
        place = self.writer.count("train")
        if self.writer.add(item.id, item.text, item.source, item.target, item.group) == "heldout":
            self.drawn.add(place, item.group, read.text)

    def _skip(self, item: Skipped) -> None:
        self.census.skip(item.reason)
        with self.skipped.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")


def _require_both_splits(config: CorpusConfig, source: Source, writer: CorpusWriter, census: Census) -> None:
    if not census.documents and not census.unsampled:
        raise DataError(f"the corpus is empty{census.left_out()}: {source.hint()}")
    field = config.group_field
    groups = f"; corpus.group_field={field} draws whole groups, so one of more values may be needed" if field else ""
    changes = dict(zip(SPLITS, ("lower", "raise"), strict=True))
    for split in SPLITS:
        if split == "train" and not writer.count(split) and census.unsampled:
            raise DataError(
                f"corpus.sample={config.sample}: none of the {census.unsampled} training documents is in the sample; "
                "raise corpus.sample, or give more text"
            )
        if not writer.count(split):
            whole = isinstance(config, FilesCorpus) and config.txt_document == "file"
            lines = "; corpus.txt_document=paragraph or line makes many documents of a .txt file" if whole else ""
            raise DataError(
                f"corpus.heldout={config.heldout}: none of the {census.documents} documents{census.left_out()} falls "
                f"into the {split} split; {source.hint()}, raise corpus.limit, or {changes[split]} corpus.heldout"
                f"{groups}{lines}"
            )
