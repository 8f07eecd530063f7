"""Bad input to a corpus: every fault is named with its file and line, and nothing is dropped silently."""

import bz2
import gzip
import json
import re
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from paribus.errors import ConfigurationError, DataError, ParibusError
from support.corpora import build_corpus, files_corpus, write_jsonl

ROWS = [{"id": f"d{i}", "text": f"document number {i}"} for i in range(40)]


def refusal(tmp_path: Path, *paths: Path | str, error: type[ParibusError] = DataError, **fields: Any) -> str:
    with pytest.raises(error) as caught:
        build_corpus(files_corpus(*paths, **fields), tmp_path / "refused")
    rmtree(tmp_path / "refused", ignore_errors=True)
    return str(caught.value)


def skipped(output: Path) -> list[dict[str, Any]]:
    return [json.loads(entry) for entry in (output / "skipped.jsonl").read_text().splitlines()]


def with_line(path: Path, line: bytes, at: int = 3) -> Path:
    """Valid JSON lines with `line` in the place of line `at`, counted from 1."""
    lines = [json.dumps(row).encode() for row in ROWS]
    lines[at - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_every_file_that_cannot_be_read_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "table.csv").write_text("a,b")
    (tmp_path / "folder").mkdir()
    path = write_jsonl(tmp_path / "twice.jsonl", ROWS)
    names = ("a.jsonl", "b.txt", "*.parquet", "empty.jsonl", "table.csv", "folder", "tw*.jsonl")
    message = refusal(tmp_path, path, *(tmp_path / name for name in names))
    assert message.startswith("corpus.paths: ")
    for part in (
        "a.jsonl: no such file",
        "b.txt: no such file",
        "*.parquet: the pattern matches no file",
        "empty.jsonl: the file is empty",
        "table.csv: unknown suffix; known are .jsonl, .parquet, .txt, .json, plain or with .gz, .zst, .bz2",
        f"folder: a directory; give a pattern such as {tmp_path}/folder/*.jsonl",
        "twice.jsonl: listed more than once",
    ):
        assert part in message
    for name in ("blank.jsonl", "blank.txt"):
        (tmp_path / name).write_text("\n \n\n")
        assert f"{name}: the file has no document" in refusal(tmp_path, tmp_path / name, txt_document="line")


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
def test_bad_line_is_named_or_counted(tmp_path: Path, line: bytes, reason: str, message: str) -> None:
    path = with_line(tmp_path / "rows.jsonl", line)
    refused = refusal(tmp_path, path)
    assert f"{path}, line 3: " in refused
    assert message in refused
    assert "corpus.on_invalid=skip" in refused
    result = build_corpus(files_corpus(path, on_invalid="skip"), tmp_path / "skipped")
    assert (result["documents"], result["skipped"]) == (39, {reason: 1})
    logged = [(entry["file"], entry["line"], entry["reason"]) for entry in skipped(tmp_path / "skipped")]
    assert logged == [("rows.jsonl", 3, reason)]


def test_ids_that_are_missing_repeated_or_no_strings_are_refused(tmp_path: Path) -> None:
    lines = {
        b'{"text": "x"}': "no field 'id' (corpus.id_field); it has 'text'",
        b'{"text": "x", "id": 1.5}': "holds a number, not a non-empty string or an integer",
        b'{"text": "x", "id": "d0"}': "the id 'd0' (corpus.id_field) occurred before",
    }
    for number, (line, message) in enumerate(lines.items()):
        path = with_line(tmp_path / f"{number}.jsonl", line)
        assert re.search(rf"{number}\.jsonl, line 3: .*{re.escape(message)}", refusal(tmp_path, path, id_field="id"))
        result = build_corpus(files_corpus(path, id_field="id", on_invalid="skip"), tmp_path / f"skipped{number}")
        assert result["documents"] == 39
    one, two = (write_jsonl(tmp_path / name, ROWS[:20]) for name in ("one.jsonl", "two.jsonl"))
    assert "two.jsonl, line 1: the id 'd0'" in refusal(tmp_path, one, two, id_field="id")
    (tmp_path / "a.txt").write_text("text")
    message = refusal(tmp_path, tmp_path / "a.txt", id_field="id", error=ConfigurationError)
    assert message.startswith("corpus.id_field=id: "), "plain text has no ids"


@pytest.mark.parametrize("suffix", ["gz", "bz2", "zst"])
def test_truncated_archive_is_refused_by_name_and_line_whatever_is_skipped(tmp_path: Path, suffix: str) -> None:
    data = b"".join(json.dumps({"text": f"{i * 7919 % 104729} words {i}"}).encode() + b"\n" for i in range(10_000))
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.ZstdCompressor().compress}[suffix]
    archive, path = compress(data), tmp_path / f"cut.jsonl.{suffix}"
    path.write_bytes(archive[: len(archive) * 2 // 3])
    where = r"\(Truncated compressed stream.*\); it stops (after|before the end of) line \d+"
    for on_invalid in ("error", "skip"):
        message = refusal(tmp_path, path, on_invalid=on_invalid)
        assert re.search(rf"cut\.jsonl\.{suffix}: truncated or damaged \.{suffix} archive {where}", message)
    path.write_bytes(b"this is plain text")
    assert re.search(rf"damaged \.{suffix} archive .* before the end of line 1", refusal(tmp_path, path))


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, write_page_checksum=True)
    return path


def test_parquet_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", body=["x"], number=[3])
    for fields, message in (
        ({}, "a.parquet: no column 'text' (corpus.text_field); it has 'body', 'number'"),
        ({"text_field": "number"}, "column 'number' (corpus.text_field) holds int64, not strings"),
        ({"text_field": "body", "id_field": "key"}, "no column 'key' (corpus.id_field)"),
    ):
        assert message in refusal(tmp_path, path, **fields)
    whole = parquet(path, text=[f"document {i}" for i in range(5000)]).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "a.parquet: a truncated or damaged Parquet file" in refusal(tmp_path, path)
    path.write_bytes(whole[:2000] + bytes([whole[2000] ^ 255]) + whole[2001:])
    assert "a.parquet: damaged after row 0" in refusal(tmp_path, path)


def test_bad_parquet_rows_are_named_or_counted(tmp_path: Path) -> None:
    texts: list[str | None] = [f"document {i}" for i in range(40)]
    path = parquet(tmp_path / "null.parquet", text=[*texts[:20], None, *texts[20:], ""])
    assert "null.parquet, row 21: field 'text' (corpus.text_field) holds null" in refusal(tmp_path, path)
    result = build_corpus(files_corpus(path, on_invalid="skip"), tmp_path / "skipped")
    assert (result["documents"], result["skipped"]) == (40, {"empty_text": 1, "text_not_a_string": 1})
    values = pa.array([b"fine", b"caf\xe9"], pa.binary()).view(pa.string())
    path = parquet(tmp_path / "latin.parquet", text=values)
    assert "latin.parquet, row 2: invalid UTF-8 at byte 3 of the value" in refusal(tmp_path, path)


def test_invalid_utf8_in_plain_text_is_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"first\nsecond\n\nthird caf\xe9\n")
    for document in ("file", "line", "paragraph"):
        message = refusal(tmp_path, path, txt_document=document)
        assert f"{path}, line 4: invalid UTF-8: byte 0xe9 at byte 9 of the line, byte 23 of the text" in message


def test_too_few_documents_say_what_to_change(tmp_path: Path) -> None:
    one, bad = (write_jsonl(tmp_path / f"{n}.jsonl", rows) for n, rows in enumerate((ROWS[:1], [{"text": ""}])))
    message = r"corpus.heldout=0.33\d*: none of the 1 documents falls into the (train|heldout) split"
    assert re.match(message, refusal(tmp_path, one))
    message = "the corpus is empty (left out: 1 empty_text): give more text in corpus.paths"
    assert message in refusal(tmp_path, bad, on_invalid="skip")
    message = "corpus.limit=10: the first document, 0.jsonl:1, has 17 bytes; raise the limit"
    assert refusal(tmp_path, one, limit=10) == message
