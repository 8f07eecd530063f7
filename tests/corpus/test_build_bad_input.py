"""Bad input to a corpus: every fault is named with its file and line, and nothing is dropped silently."""

import bz2
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from paribus.corpus.build import build
from paribus.corpus.stage import fingerprint
from paribus.errors import ConfigurationError, DataError, ParibusError
from paribus.stage import SilentListener
from paribus.store.files import FileDigests
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.run_config import run_config
from support.stages import context_at

ROWS = [{"id": f"d{i}", "text": f"document number {i}"} for i in range(40)]


def refusal(tmp_path: Path, *paths: Path | str, error: type[ParibusError] = DataError, **fields: Any) -> str:
    with pytest.raises(error) as caught:
        build_corpus(files_corpus(*paths, **fields), tmp_path / "refused")
    return str(caught.value)


def with_line(path: Path, line: bytes, at: int = 3) -> Path:
    """Valid JSON lines with `line` in the place of line `at`, counted from 1."""
    lines = [json.dumps(row).encode() for row in ROWS]
    lines[at - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, tmp_path / "a.jsonl", tmp_path / "b.txt", tmp_path / "*.parquet")
    assert message.startswith("corpus.paths: ")
    for name in ("a.jsonl: no such file", "b.txt: no such file", "*.parquet: the pattern matches no file"):
        assert name in message


def test_an_empty_file_a_directory_and_an_unknown_suffix_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "table.csv").write_text("a,b")
    (tmp_path / "folder").mkdir()
    message = refusal(tmp_path, *(tmp_path / name for name in ("empty.jsonl", "table.csv", "folder")))
    assert "empty.jsonl: the file is empty" in message
    assert (
        "table.csv: unknown suffix; known are .jsonl, .parquet, .txt, .json, plain or with .gz, .zst, .bz2" in message
    )
    assert re.search(r"folder: a directory; give a pattern such as .*folder/\*\.jsonl", message)


def test_a_file_listed_twice_is_refused(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    assert "a.jsonl: listed more than once" in refusal(tmp_path, path, tmp_path / "*.jsonl")


@pytest.mark.parametrize("name", ["blank.jsonl", "blank.txt"])
def test_a_file_of_blank_lines_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("\n \n\n")
    assert f"{name}: the file has no document" in refusal(tmp_path, tmp_path / name, txt_document="line")


@pytest.mark.parametrize("document", ["line", "paragraph", "file"])
@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_files_without_a_document_are_skipped_and_counted_where_that_is_asked(
    tmp_path: Path, document: str, content: bytes
) -> None:
    rows = write_jsonl(tmp_path / "a.jsonl", ROWS)
    blank, packed, empty = (tmp_path / name for name in ("b.jsonl", "c.txt.gz", "d.txt"))
    blank.write_bytes(content)
    packed.write_bytes(gzip.compress(b""))
    empty.touch()
    paths = (blank, rows, packed, empty)
    refused = refusal(tmp_path, *paths, txt_document=document)
    assert str(blank if content == b"" else empty) in refused
    assert "corpus.on_invalid=skip" in refused
    config = files_corpus(*paths, txt_document=document, on_invalid="skip")
    result = build_corpus(config, tmp_path / "skipped")
    assert result["documents"] == len(ROWS)
    reason = "empty_text" if document == "file" else "empty_file"
    logged = [json.loads(entry) for entry in (tmp_path / "skipped" / "skipped.jsonl").read_text().splitlines()]
    assert [(entry["file"], entry["reason"]) for entry in logged] == [
        ("b.jsonl", "empty_file"),
        ("c.txt.gz", reason),
        ("d.txt", reason),
    ]
    named = fingerprint(config, FileDigests(tmp_path / "cache"))["files"]
    assert [entry[0] for entry in named] == [path.name for path in paths]


@pytest.mark.parametrize("workers", [1, 2])
def test_files_of_which_everything_was_skipped_are_named(tmp_path: Path, workers: int) -> None:
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    for number in range(12):
        (tmp_path / f"array{number:02}.json").write_text(json.dumps(ROWS))
    config = files_corpus(tmp_path / "*.json*", on_invalid="skip")
    context = context_at(tmp_path / "corpus", tmp_path / "work", run_config(corpus=config), {}, workers=workers)
    assert build(context)["documents"] == len(ROWS)
    assert isinstance(context.listener, SilentListener)
    (told,) = (text for text in context.listener.messages if "without a document" in text)
    assert told.startswith(f"files without a document (skipped.jsonl says why): {tmp_path / 'array00.json'}; ")
    assert told.endswith("array09.json; and 2 more")
    assert str(rows) not in told


@pytest.mark.parametrize("name", ["cut.jsonl.gz", "cut.txt.zst", "cut.parquet", "cut.txt.bz2"])
def test_an_archive_or_a_table_without_a_byte_is_refused_whatever_is_skipped(tmp_path: Path, name: str) -> None:
    rows = write_jsonl(tmp_path / "a.jsonl", ROWS)
    (tmp_path / name).touch()
    told = f"{tmp_path / name}: the file is empty, and no whole file of its format; make or fetch it again"
    assert told in refusal(tmp_path, rows, tmp_path / name, on_invalid="skip")


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (b'{"text": "caf\xe9 x"}', "invalid_utf8", "invalid UTF-8: byte 0xe9 at byte 13 of the line, byte 97 of"),
        (b'{"text": "open', "invalid_json", "no valid JSON at character 10: Unterminated string"),
        (b"[" * 100_000, "invalid_json", "no JSON that can be read"),
        (b'["text"]', "not_an_object", "a JSON list, not an object"),
        (b'{"id": 1, "body": "x"}', "no_text_field", "no field 'text' (corpus.text_field); it has 'id', 'body'"),
        (b"{}", "no_text_field", "no field 'text' (corpus.text_field); it has no field"),
        (b'{"text": 3}', "text_not_a_string", "field 'text' (corpus.text_field) holds an integer, not a string"),
        (b'{"text": null}', "text_not_a_string", "holds null, not a string"),
        (b'{"text": ""}', "empty_text", "the text is empty"),
        (b'{"text": "\\ud800"}', "lone_surrogate", "half a surrogate pair at character 0"),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path: Path, line: bytes, reason: str, message: str) -> None:
    path = with_line(tmp_path / "rows.jsonl", line)
    refused = refusal(tmp_path, path)
    assert f"{path}, line 3: " in refused
    assert message in refused
    assert "corpus.on_invalid=skip" in refused
    result = build_corpus(files_corpus(path, on_invalid="skip"), tmp_path / "skipped")
    assert (result["documents"], result["skipped"]) == (39, {reason: 1})
    logged = [json.loads(entry) for entry in (tmp_path / "skipped" / "skipped.jsonl").read_text().splitlines()]
    assert [(entry["file"], entry["line"], entry["reason"]) for entry in logged] == [("rows.jsonl", 3, reason)]


def test_ids_that_are_missing_repeated_or_no_strings_are_refused(tmp_path: Path) -> None:
    lines = {b'{"text": "x"}': "no field 'id' (corpus.id_field); it has 'text'"}
    lines |= {b'{"text": "x", "id": 1.5}': "holds a number, not a non-empty string or an integer"}
    lines |= {b'{"text": "x", "id": "d0"}': "the id 'd0' (corpus.id_field) occurred before"}
    for number, (line, message) in enumerate(lines.items()):
        path = with_line(tmp_path / f"{number}.jsonl", line)
        with pytest.raises(DataError, match=rf"{number}\.jsonl, line 3: .*{re.escape(message)}"):
            build_corpus(files_corpus(path, id_field="id"), tmp_path / f"refused{number}")
        result = build_corpus(files_corpus(path, id_field="id", on_invalid="skip"), tmp_path / f"skipped{number}")
        assert result["documents"] == 39


def test_an_id_repeated_in_another_file_is_refused(tmp_path: Path) -> None:
    one, two = (write_jsonl(tmp_path / name, ROWS[:20]) for name in ("one.jsonl", "two.jsonl"))
    assert "two.jsonl, line 1: the id 'd0'" in refusal(tmp_path, one, two, id_field="id")


def test_plain_text_has_no_ids(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    message = refusal(tmp_path, tmp_path / "a.txt", id_field="id", error=ConfigurationError)
    assert message.startswith("corpus.id_field=id: ")


@pytest.mark.parametrize("suffix", ["gz", "bz2", "zst"])
@pytest.mark.parametrize("skip", ["error", "skip"])
def test_a_truncated_archive_is_refused_by_name_and_line(tmp_path: Path, suffix: str, skip: str) -> None:
    data = b"".join(json.dumps({"text": f"{i * 7919 % 104729} words {i}"}).encode() + b"\n" for i in range(10_000))
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.ZstdCompressor().compress}[suffix]
    archive = compress(data)
    path = tmp_path / f"cut.jsonl.{suffix}"
    path.write_bytes(archive[: len(archive) * 2 // 3])
    message = refusal(tmp_path, path, on_invalid=skip)
    where = r"\(Truncated compressed stream.*\); it stops (after|before the end of) line \d+"
    assert re.search(rf"cut\.jsonl\.{suffix}: truncated or damaged \.{suffix} archive {where}", message)
    path.write_bytes(b"this is plain text")
    with pytest.raises(DataError, match=rf"damaged \.{suffix} archive .* before the end of line 1"):
        build_corpus(files_corpus(path), tmp_path / "plain")


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, write_page_checksum=True)
    return path


def test_parquet_files_without_the_column_or_with_another_type_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", body=["x"], number=[3])
    assert "a.parquet: no column 'text' (corpus.text_field); it has 'body', 'number'" in refusal(tmp_path, path)
    with pytest.raises(DataError, match=r"column 'number' .* holds int64, not strings"):
        build_corpus(files_corpus(path, text_field="number"), tmp_path / "number")
    with pytest.raises(DataError, match=r"no column 'key' \(corpus.id_field\)"):
        build_corpus(files_corpus(path, text_field="body", id_field="key"), tmp_path / "key")


def test_truncated_and_damaged_parquet_files_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=[f"document {i}" for i in range(5000)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "a.parquet: a truncated or damaged Parquet file" in refusal(tmp_path, path)
    path.write_bytes(whole[:2000] + bytes([whole[2000] ^ 255]) + whole[2001:])
    with pytest.raises(DataError, match=r"a\.parquet: damaged after row 0"):
        build_corpus(files_corpus(path), tmp_path / "damaged")


def test_bad_parquet_rows_are_named_or_counted(tmp_path: Path) -> None:
    texts: list[str | None] = [f"document {i}" for i in range(40)]
    path = parquet(tmp_path / "null.parquet", text=[*texts[:20], None, *texts[20:], ""])
    assert "null.parquet, row 21: field 'text' (corpus.text_field) holds null" in refusal(tmp_path, path)
    result = build_corpus(files_corpus(path, on_invalid="skip"), tmp_path / "skipped")
    assert (result["documents"], result["skipped"]) == (40, {"empty_text": 1, "text_not_a_string": 1})
    values = pa.array([b"fine", b"caf\xe9"], pa.binary()).view(pa.string())
    path = parquet(tmp_path / "latin.parquet", text=values)
    with pytest.raises(DataError, match=r"latin\.parquet, row 2: invalid UTF-8 at byte 3 of the value"):
        build_corpus(files_corpus(path), tmp_path / "latin")


@pytest.mark.parametrize("document", ["file", "line", "paragraph"])
def test_invalid_utf8_in_plain_text_is_named_by_line(tmp_path: Path, document: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"first\nsecond\n\nthird caf\xe9\n")
    message = refusal(tmp_path, path, txt_document=document)
    assert f"{path}, line 4: invalid UTF-8: byte 0xe9 at byte 9 of the line, byte 23 of the text" in message


def test_a_corpus_with_an_empty_split_says_what_to_change(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "one.jsonl", ROWS[:1])
    message = refusal(tmp_path, path)
    assert re.match(r"corpus.heldout=0.33\d*: none of the 1 documents falls into the (train|heldout) split", message)
    bad = write_jsonl(tmp_path / "bad.jsonl", [{"text": ""}])
    with pytest.raises(
        DataError, match=r"the corpus is empty \(left out: 1 empty_text\): give more text in corpus.paths"
    ):
        build_corpus(files_corpus(bad, on_invalid="skip"), tmp_path / "empty")


def test_a_limit_below_the_first_document_is_refused(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    message = refusal(tmp_path, path, limit=10)
    assert message == "corpus.limit=10: the first document, rows.jsonl:1, has 17 bytes; raise the limit"
