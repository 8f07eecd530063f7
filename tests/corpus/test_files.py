"""Files that workers elsewhere read ahead give the documents, and the errors, of files read in turn."""

import dataclasses
import gzip
from pathlib import Path

import pytest

from paribus.config.groups.corpus import FilesCorpus
from paribus.corpus.files import FilesSource, Skipped, SourceDocument
from paribus.engine.local import LocalEngine
from paribus.errors import DataError
from support.corpora import files_corpus, write_jsonl
from support.engines import Elsewhere


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
    source = FilesSource(config, Elsewhere(1) if elsewhere else LocalEngine(1), work)
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


@pytest.mark.parametrize("damage", ["truncated", "invalid", "empty"])
def test_an_error_comes_in_its_place_and_in_its_words(config: FilesCorpus, tmp_path: Path, damage: str) -> None:
    packed = tmp_path / "c.jsonl.gz"
    if damage == "truncated":
        packed.write_bytes(packed.read_bytes()[:-30])
    else:
        config = dataclasses.replace(config, on_invalid="error")
        if damage == "empty":
            config = dataclasses.replace(config, paths=(str(packed),))
            packed.write_bytes(gzip.compress(b"\n\n"))
    expected = read(config, tmp_path / "work", elsewhere=False)
    assert expected[2]
    assert read(config, tmp_path / "work", elsewhere=True) == expected


def test_a_file_without_a_document_is_left_out_in_its_place(config: FilesCorpus, tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(b"")
    items, *others = read(config, tmp_path / "work", elsewhere=False)
    assert read(config, tmp_path / "work", elsewhere=True) == (items, *others)
    (place,) = (place for place, item in enumerate(items) if isinstance(item, Skipped) and item.file == "b.jsonl")
    following = items[place + 1]
    assert isinstance(following, SourceDocument) and following.source == "c.jsonl.gz"
    assert others[-1] == ""


def test_no_file_is_read_beyond_the_limit(config: FilesCorpus, tmp_path: Path) -> None:
    numbered = dataclasses.replace(config, limit=9_000, id_field=None)
    items, _, _ = read(numbered, tmp_path / "work", elsewhere=True)
    ids = [item.id for item in items if isinstance(item, SourceDocument)]
    assert ids[-1].startswith("c.jsonl.gz:")
    assert [id for id in ids if id.startswith("b")] == [f"b.jsonl:{line}" for line in range(1, 5)]
