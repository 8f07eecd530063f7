"""Files of documents, read ahead elsewhere or in turn, and files of pairs of source and target."""

import bz2
import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.corpus import FilesCorpus, ParallelCorpus
from paribus.config.groups.tokenization import BPETokenizer
from paribus.corpus.artifact import CorpusArtifact
from paribus.corpus.files import FilesSource, Skipped, SourceDocument
from paribus.corpus.paths import COMPRESSIONS
from paribus.corpus.readers import ArchiveError, open_decompressed
from paribus.corpus.stage import fingerprint
from paribus.engine.local import LocalEngine
from paribus.errors import ConfigurationError, DataError
from paribus.store.files import FileDigests
from paribus.tokenization.build import build_tokens, build_vocabulary
from paribus.tokenization.encoded_corpus import EncodedCorpus
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.engines import WithoutSharedMemory
from support.run_config import run_config
from support.stages import context_at


@pytest.fixture
def config(tmp_path: Path) -> FilesCorpus:
    """A file of each format; the records of two are odd."""
    rows = [{"id": f"a{number}", "text": f"text {number} 東京 \u2028 end"} for number in range(30)]
    rows[3]["text"] = ""
    plain = write_jsonl(tmp_path / "a.jsonl", rows)
    with plain.open("a") as file:
        file.write('{"id": "a1", "text": "again"}\n{"id": 7, "text": "\\ud800"}\n[]\n{"\\ud800": 1}\n')
    more = write_jsonl(tmp_path / "b.jsonl", [{"id": number, "text": "x" * 3_000} for number in range(2_000)])
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes().replace(b'"a', b'"c')))
    return files_corpus(plain, more, packed, id_field="id", on_invalid="skip")


def read(
    config: FilesCorpus, work: Path, *, elsewhere: bool
) -> tuple[list[SourceDocument | Skipped], list[float], str]:
    """The items, the progress after each, and the error that ended them."""
    work.mkdir(exist_ok=True)
    source = FilesSource(config, WithoutSharedMemory(1) if elsewhere else LocalEngine(1), work)
    items, done = [], []
    try:
        for item in source.items():
            items.append(item)
            done.append(source.done)
    except DataError as error:
        return items, done, str(error)
    return items, done, ""


def test_every_document_and_what_was_left_out_come_in_order(config: FilesCorpus, tmp_path: Path) -> None:
    expected = read(config, tmp_path / "work", elsewhere=False)
    assert read(config, tmp_path / "work", elsewhere=True) == expected
    assert sum(isinstance(item, SourceDocument) for item in expected[0]) == 2_058
    assert sum(isinstance(item, Skipped) for item in expected[0]) == 10
    assert list((tmp_path / "work" / "extracts").iterdir()) == []
    # A file without a document is left out in its place.
    (tmp_path / "b.jsonl").write_bytes(b"")
    items, *rest = read(config, tmp_path / "work", elsewhere=False)
    assert read(config, tmp_path / "work", elsewhere=True) == (items, *rest)
    (place,) = (place for place, item in enumerate(items) if isinstance(item, Skipped) and item.file == "b.jsonl")
    following = items[place + 1]
    assert isinstance(following, SourceDocument) and following.source == "c.jsonl.gz"
    assert rest[-1] == ""


@pytest.mark.parametrize("damage", ["truncated", "invalid", "empty"])
def test_error_comes_in_its_place_and_in_its_words(config: FilesCorpus, tmp_path: Path, damage: str) -> None:
    packed = tmp_path / "c.jsonl.gz"
    if damage == "truncated":
        packed.write_bytes(packed.read_bytes()[:-30])
    else:
        config = replace(config, on_invalid="error")
    if damage == "empty":
        config = replace(config, paths=(str(packed),))
        packed.write_bytes(gzip.compress(b"\n\n"))
    expected = read(config, tmp_path / "work", elsewhere=False)
    assert expected[2]
    assert read(config, tmp_path / "work", elsewhere=True) == expected


# Pairs of source and target, from files to encoded pairs.

PAIRS = [(f"the {number} small cats", f"{number} kleine Katzen\u2028{number}") for number in range(40)]


def write_sides(directory: Path, pairs: list[tuple[str, str]]) -> ParallelCorpus:
    """Aligned files as WMT has them, the targets compressed."""
    (directory / "train.en").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    with gzip.open(directory / "train.de.gz", "wt", encoding="utf-8", newline="") as file:
        file.writelines(f"{target}\r\n" for _, target in pairs)
    return ParallelCorpus(
        source=(str(directory / "train.en"),), target=(str(directory / "train.de.gz"),), heldout=1 / 3
    )


def read_pairs(corpus: Path) -> list[tuple[str, str | None]]:
    artifact = CorpusArtifact(corpus)
    return [(each.text, each.target) for split in ("train", "heldout") for each in artifact.documents(split)]


def test_line_n_of_the_sources_belongs_to_line_n_of_the_targets(tmp_path: Path) -> None:
    result = build_corpus(write_sides(tmp_path, PAIRS), tmp_path / "corpus")
    assert sorted(read_pairs(tmp_path / "corpus")) == sorted(PAIRS)
    assert result["documents"] == len(PAIRS)
    assert result["bytes"] == sum(len(source.encode()) + len(target.encode()) for source, target in PAIRS)
    targets = sum(result[split]["target_bytes"] for split in ("train", "heldout"))
    assert targets == sum(len(target.encode()) for _, target in PAIRS)
    (first,) = (tmp_path / "corpus" / "train").iterdir()
    assert pq.read_schema(first).names == ["id", "text", "target", "source", "bytes"]
    assert {each.id for each in CorpusArtifact(tmp_path / "corpus").documents("train")} <= {
        f"train.en:{line}" for line in range(1, 41)
    }


@pytest.mark.parametrize(("name", "empty"), [("train.en", ("", PAIRS[7][1])), ("train.de.gz", (PAIRS[7][0], ""))])
def test_empty_side_is_an_error_by_file_and_line_or_skipped_and_counted(
    tmp_path: Path, name: str, empty: tuple[str, str]
) -> None:
    config = write_sides(tmp_path, [*PAIRS[:7], empty, *PAIRS[8:]])
    with pytest.raises(DataError, match=rf"{name}, line 8: the text is empty.*corpus.on_invalid=skip"):
        build_corpus(config, tmp_path / "refused")
    result = build_corpus(replace(config, on_invalid="skip"), tmp_path / "corpus")
    assert result["skipped"] == {"empty_text": 1}
    assert sorted(read_pairs(tmp_path / "corpus")) == sorted(PAIRS[:7] + PAIRS[8:])


def test_sides_that_are_not_aligned_are_refused(tmp_path: Path) -> None:
    config = write_sides(tmp_path, PAIRS)
    for changes, error, message in (
        ({"target": None}, ConfigurationError, r"corpus.target: .*train.en is text and has no second field"),
        (
            {"source": (*config.source, *(config.target or ()))},
            ConfigurationError,
            r"corpus.target: 1 files \(train.de.gz\), but corpus.source has 2",
        ),
        ({"target": (str(tmp_path / "none.de"),)}, DataError, r"corpus.target: .*: no such file"),
    ):
        with pytest.raises(error, match=message):
            fingerprint(replace(config, **changes), FileDigests(tmp_path / "cache"))  # type: ignore[arg-type]
    (tmp_path / "train.en").write_text("one line\nanother\n")
    with pytest.raises(DataError, match=r"train.en ends after line 2, but .*train.de.gz goes on: .* not aligned"):
        build_corpus(config, tmp_path / "corpus")


def test_both_sides_train_the_vocabulary_and_are_encoded_one_after_the_other(tmp_path: Path) -> None:
    config = run_config(
        corpus=write_sides(tmp_path, PAIRS), tokenizer=BPETokenizer(vocab_size=320, special_tokens=("<|endoftext|>",))
    )
    build_corpus(config.corpus, tmp_path / "corpus")
    inputs = {name: tmp_path / name for name in ("corpus", "vocabulary")}
    vocabulary = build_vocabulary(context_at(tmp_path / "vocabulary", tmp_path / "v.work", config, inputs))
    result = build_tokens(context_at(tmp_path / "tokens", tmp_path / "t.work", config, inputs))
    documents = list(CorpusArtifact(tmp_path / "corpus").documents("train"))
    encoded = EncodedCorpus(tmp_path / "tokens")
    assert vocabulary["bytes"] == sum(document.bytes for document in documents) == result["bytes"]
    assert {b" small", b" kleine"} <= {entry.bytes for entry in encoded.tokenizer.vocabulary}
    assert encoded.source_lengths is not None
    assert result["source_tokens"] == encoded.source_lengths.sum()
    for number, document in enumerate(documents):
        ids, length = encoded.document(number), encoded.source_lengths[number]
        np.testing.assert_array_equal(ids[:length], encoded.tokenizer.encode(document.text))
        np.testing.assert_array_equal(ids[length:], encoded.tokenizer.encode(document.target or ""))


# Decompression that notices a missing end, whatever the number of frames.

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def decompressed(data: bytes, compression: str) -> bytes:
    return open_decompressed(Path("some.txt"), io.BytesIO(data), compression).read()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@given(parts=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=4))
def test_every_frame_of_an_archive_is_read(compression: str, parts: list[bytes]) -> None:
    archive = b"".join(COMPRESS[compression](part) for part in parts)
    assert decompressed(archive, compression) == b"".join(parts)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_archive_is_streamed_whole_and_every_cut_or_damage_is_noticed(compression: str) -> None:
    compress = COMPRESS[compression]
    text = b"".join(b"%d bottles\n" % number for number in range(400_000))
    assert decompressed(compress(text), compression) == text
    frame, refused = compress(b"one line\nand another\n" * 20), [compress(b"text") + b"garbage" * 10]
    refused += [before + frame[:end] for end in range(1, len(frame)) for before in (b"", frame)]
    empty_frame = compress(b"a") + compress(b"") + compress(b"b")
    if compression == "bz2":
        refused.append(empty_frame)
    else:
        assert decompressed(empty_frame, compression) == b"ab"
    for archive in refused:
        with pytest.raises(ArchiveError, match=rf"some\.txt: truncated or damaged \.{compression} archive"):
            decompressed(archive, compression)
