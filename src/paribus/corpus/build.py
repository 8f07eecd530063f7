"""The stage `corpus`: reads the source, splits it and writes the corpus artefact."""

import json
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, ParallelCorpus, PydocsCorpus
from paribus.corpus.artifact import SPLITS, CorpusWriter, in_sample
from paribus.corpus.census import Census
from paribus.corpus.separation import Drawn, separate
from paribus.corpus.sources.distributions import versions
from paribus.corpus.sources.files import FilesSource
from paribus.corpus.sources.huggingface import HuggingFaceSource
from paribus.corpus.sources.parallel import ParallelSource
from paribus.corpus.sources.pydocs import PydocsSource
from paribus.corpus.sources.source import Found, Skipped, Source
from paribus.engine.engine import Engine
from paribus.errors import DataError
from paribus.native.announce import compile_kernels
from paribus.stage.context import JSON, Reporter, StageContext

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
    compile_kernels("corpus", context.report)
    source = open_source(config, context.engine, context.work)
    census, drawn, pairs = Census(), Drawn(), isinstance(config, ParallelCorpus)
    with CorpusWriter(context.output, heldout=config.heldout, pairs=pairs) as writer:
        copy = _Copy(source, writer, census, drawn, config, context.output / SKIPPED_FILE, context.report)
        complete = copy.run()
    _require_both_splits(config, source, writer, census)
    separated = separate(context, drawn)
    census.move(separated.moved)
    result = census.result() | {"stopped_at": "end" if complete else "limit", "overlap": separated.overlap}
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


@dataclass(frozen=True)
class _Copy:
    """Copies the longest prefix of a source that fits into `limit` bytes, both splits together."""

    source: Source
    writer: CorpusWriter
    census: Census
    drawn: Drawn
    config: CorpusConfig
    skipped: Path
    report: Reporter

    def run(self) -> bool:
        """Copy, and say whether that was everything."""
        with closing(self.source.items()) as items:
            for item in items:
                if isinstance(item, Skipped):
                    self._skip(item)
                elif not self._add(item):
                    return False
                self._progress()
        return True

    def _add(self, item: Found) -> bool:
        text, target = item.text.encode(), None if item.target is None else item.target.encode()
        size, limit = len(text) + len(target or b""), self.config.limit
        if self._unsampled(text, item.group):
            self.census.leave_out(size)
            return True
        if limit is not None and self.census.bytes + size > limit:
            if not self.census.documents:
                first = f"the first document, {item.id}, has {size} bytes"
                raise DataError(f"corpus.limit={limit}: {first}; raise the limit")
            return False
        self.census.add(item.id.encode(), text, target)
        place = self.writer.count("train")
        if self.writer.add(item.id, item.text, item.source, item.target, item.group) == "heldout":
            self.drawn.add(place, item.group, text)
        return True

    def _unsampled(self, text: bytes, group: str | None) -> bool:
        """Whether a document would be one of training, and is none of those that are kept."""
        sample = self.config.sample
        return sample is not None and self.writer.split_of(text, group) == "train" and not in_sample(text, sample)

    def _skip(self, item: Skipped) -> None:
        self.census.skip(item.reason)
        with self.skipped.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")

    def _progress(self) -> None:
        doing = f"reading documents ({self.census.documents:,})"
        read = self.source.done / self.source.total if self.source.total else 0.0
        limit = self.config.limit
        if limit is not None and self.census.bytes / limit >= read:
            self.report.progress(self.census.bytes, limit, unit="B", doing=doing)
        else:
            total = max(self.source.total, self.source.done)
            self.report.progress(self.source.done, total, unit=self.source.unit, doing=doing)


def _require_both_splits(config: CorpusConfig, source: Source, writer: CorpusWriter, census: Census) -> None:
    if not census.documents:
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
            raise DataError(
                f"corpus.heldout={config.heldout}: none of the {census.documents} documents{census.left_out()} falls "
                f"into the {split} split; {source.hint()}, raise corpus.limit, or {changes[split]} corpus.heldout"
                f"{groups}"
            )
