"""The stage `corpus` on files: what it writes and what its record says."""

import bz2
import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.corpus import FilesCorpus
from paribus.corpus.artifact import SPLITS, CorpusArtifact, Document
from paribus.corpus.build import SizedDocument, build, of_size
from paribus.errors import DataError
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.engines import WithoutSharedMemory
from support.run_config import run_config
from support.stages import context_at

TINY = [
    "Wikipedia",
    "人人生而自由,在尊严和权利上一律平等。",
    "naïve café",
    "Ñandú\r\n",
    "a\u2028b\u0085c",
    "🧑🏽‍🚀",
    "\x00nul",
    "tail ",
] * 3


def all_documents(path: Path) -> list[Document]:
    corpus = CorpusArtifact(path)
    return [document for split in SPLITS for document in corpus.documents(split)]


def digest(documents: list[tuple[str, str]]) -> str:
    """The record's digest, computed the obvious way."""
    sha = hashlib.sha256()
    for id, text in documents:
        for part in (id, text):
            sha.update(len(part.encode()).to_bytes(8, "little"))
        sha.update(id.encode() + text.encode())
    return sha.hexdigest()


def test_files_of_ccnet_are_read_by_their_preset(tmp_path: Path) -> None:
    rows = [
        {"url": f"https://example.org/{n}", "raw_content": f"{text}{n}", "language": "en", "bucket": "head"}
        for n, text in enumerate(TINY)
    ]
    path = tmp_path / "2019-09" / "en_head_0000.json.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    chosen = compose_command(parse(("corpus=ccnet", f"corpus.paths=[{tmp_path}/*/en_*.json.gz]"))).jobs[0].config.corpus
    assert isinstance(chosen, FilesCorpus)
    assert (chosen.text_field, chosen.heldout) == ("raw_content", 0.001)
    build_corpus(replace(chosen, heldout=1 / 3), tmp_path / "corpus")
    texts = {document.id: document.text for document in all_documents(tmp_path / "corpus")}
    assert texts == {f"en_head_0000.json.gz:{n}": row["raw_content"] for n, row in enumerate(rows, start=1)}


def test_record_counts_what_the_artefact_holds_and_has_its_digest(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "tiny.jsonl", [{"text": text} for text in TINY])
    result, corpus = build_corpus(files_corpus(path), tmp_path / "corpus"), CorpusArtifact(tmp_path / "corpus")
    expected = {
        "documents": 24,
        "bytes": sum(len(text.encode()) for text in TINY),
        "exact_duplicates": 16,
        "skipped": {},
        "stopped_at": "end",
        "train": {"documents": corpus.count("train"), "bytes": corpus.bytes("train")},
        "heldout": {"documents": 9, "bytes": 204},
        "digest": "746e146c712dab69edccc2aae4f06cb7c002209949a814b01df1e0296a7efe85",
    }
    assert result == result | expected
    assert (corpus.count("heldout"), corpus.bytes("heldout")) == (9, 204)
    assert result["digest"] == digest([(f"tiny.jsonl:{line}", text) for line, text in enumerate(TINY, 1)])


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=10))
def test_any_text_survives_every_format_and_compression(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    texts = [*texts, *(f"filler {number}" for number in range(40))]
    plain = write_jsonl(folder / "a.jsonl", [{"text": text} for text in texts])
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (folder / "c.jsonl.bz2").write_bytes(bz2.compress(plain.read_bytes()))
    (folder / "d.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    pq.write_table(pa.table({"text": texts}), folder / "e.parquet")
    (folder / "f.parquet.zst").write_bytes(zstandard.ZstdCompressor().compress((folder / "e.parquet").read_bytes()))
    for name, column in (("g", pa.array(texts, pa.string_view())), ("h", pa.array(texts).dictionary_encode())):
        pq.write_table(pa.table({"text": column}), folder / f"{name}.parquet")
    build_corpus(files_corpus(folder / "*.*"), folder / "corpus")
    read = {document.id: document.text for document in all_documents(folder / "corpus")}
    for path in folder.glob("?.*"):
        assert [read.pop(f"{path.name}:{position}") for position in range(1, len(texts) + 1)] == texts
    assert read == {}


def test_plain_text_file_is_a_document_lines_or_paragraphs(tmp_path: Path) -> None:
    more = "".join(f"\nmore {number}\n" for number in range(40))
    text = f"\ufeffOne line\r\nand its next\n\n  \nSecond paragraph \n  with an indent\n{more}"
    (tmp_path / "a.txt").write_bytes(text.encode())
    for number in range(20):
        (tmp_path / f"other_{number}.txt").write_text(f"another {number}")

    def read(document: str, pattern: str) -> dict[str, str]:
        build_corpus(files_corpus(tmp_path / pattern, txt_document=document, heldout=0.3), tmp_path / document)
        return {document.id: document.text for document in all_documents(tmp_path / document)}

    assert read("file", "*.txt")["a.txt:1"] == text[1:]
    lines, paragraphs = read("line", "a.txt"), read("paragraph", "a.txt")
    assert [lines.get(f"a.txt:{n}") for n in range(1, 7)] == [
        "One line", "and its next", None, None, "Second paragraph ", "  with an indent",
    ]  # fmt: skip
    assert paragraphs["a.txt:1"] == "One line\r\nand its next"
    assert paragraphs["a.txt:5"] == "Second paragraph \n  with an indent"
    assert len(paragraphs) == 42


def test_ids_tell_files_of_one_name_apart_or_come_from_their_field(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "part.jsonl", [{"key": n, "body": f"{name} {n}"} for n in range(20)])
    build_corpus(files_corpus(tmp_path / "*" / "part.jsonl", text_field="body"), tmp_path / "corpus")
    assert {"00000/part.jsonl:1", "00001/part.jsonl:20"} <= {
        document.id for document in all_documents(tmp_path / "corpus")
    }
    one = files_corpus(tmp_path / "one" / "part.jsonl", text_field="body", id_field="key")
    build_corpus(one, tmp_path / "named")
    assert {document.id for document in all_documents(tmp_path / "named")} == {str(n) for n in range(20)}


def test_limit_takes_the_longest_prefix_of_both_splits_together(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": f"{number:010d}"} for number in range(100)])
    for limit in (400, 405):
        result = build_corpus(files_corpus(path, limit=limit), tmp_path / f"{limit}")
        assert (result["documents"], result["bytes"], result["stopped_at"]) == (40, 400, "limit")
        assert {document.text for document in all_documents(tmp_path / f"{limit}")} == {f"{n:010d}" for n in range(40)}


# Samples: of the training documents alone, by a hash of their text.


def by_split(path: Path) -> dict[str, list[str]]:
    return {split: list(CorpusArtifact(path).texts(split)) for split in SPLITS}


def size_of(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def test_sample_keeps_that_share_of_training_and_all_held_out_documents_in_their_order(tmp_path: Path) -> None:
    rows = [{"text": f"text {number % 900} " + f"word{number % 900} " * 20} for number in range(1_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    shares = {"whole": None, "half": 0.5, "quarter": 0.25}
    results: dict[str, Any] = {
        name: build_corpus(files_corpus(path, heldout=0.1, sample=share), tmp_path / name)
        for name, share in shares.items()
    }
    whole, half, quarter = (by_split(tmp_path / name) for name in shares)
    assert whole["heldout"] == half["heldout"] == quarter["heldout"]
    assert abs(len(half["train"]) / len(whole["train"]) - 0.5) < 0.06
    chosen = set(half["train"])
    assert half["train"] == [text for text in whole["train"] if text in chosen]
    assert set(quarter["train"]) < chosen
    unsampled = [text for text in whole["train"] if text not in chosen]
    assert results["half"]["unsampled"] == {"documents": len(unsampled), "bytes": size_of(unsampled)}
    assert results["whole"]["unsampled"] == {"documents": 0, "bytes": 0}
    assert results["half"]["documents"] + len(unsampled) == results["whole"]["documents"]
    assert results["half"]["digest"] != results["whole"]["digest"]


@pytest.mark.parametrize("sample", [0.3, 20_000])
def test_another_seed_is_another_sample_and_the_same_split(tmp_path: Path, sample: float) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": f"{number} is one of many"} for number in range(2_000)])
    samples, heldout = [], []
    for seed in (0, 1, 2**62):
        config = files_corpus(path, heldout=0.1, sample=sample, sample_seed=seed, near_duplicate=None)
        build_corpus(config, tmp_path / str(seed))
        splits = by_split(tmp_path / str(seed))
        samples.append(set(splits["train"]))
        heldout.append(splits["heldout"])
    assert heldout[0] == heldout[1] == heldout[2]
    sizes = [len(each) for each in samples]
    assert max(sizes) < 1.2 * min(sizes)
    # Two samples have what chance gives them in common.
    for first, second in combinations(samples, 2):
        assert len(first & second) / len(first) == pytest.approx(sizes[0] / 1_800, abs=0.08)


def test_sample_of_a_size_is_the_first_by_hash_that_have_as_much_training_text(tmp_path: Path) -> None:
    rows = [{"text": f"text {number} " + f"word{number} " * (number % 40)} for number in range(1_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    whole: dict[str, Any] = build_corpus(files_corpus(path, heldout=0.1), tmp_path / "whole")
    texts = by_split(tmp_path / "whole")["train"]
    hashes = {text: hashlib.blake2b(text.encode(), digest_size=8, person=b"sample").digest() for text in texts}
    for size in (20_000, 90_000, 10**9):
        result: dict[str, Any] = build_corpus(files_corpus(path, heldout=0.1, sample=size), tmp_path / f"{size}")
        chosen: set[str] = set()
        for text in sorted(texts, key=hashes.__getitem__):
            if size_of(chosen) < size:
                chosen.add(text)
        assert by_split(tmp_path / f"{size}")["train"] == [text for text in texts if text in chosen]
        assert result["documents"] + result["unsampled"]["documents"] == whole["documents"]
        assert result["train"]["bytes"] >= min(size, whole["train"]["bytes"])
        assert result["heldout"] == whole["heldout"]


@pytest.mark.parametrize("sample", [None, 0.25, 6_000])
def test_limit_is_of_what_is_read_wherever_that_is_and_a_sample_is_chosen_of_it(
    tmp_path: Path, sample: float | None
) -> None:
    """Every second record is left out for its id, and counts for nothing."""
    rows = [{"id": f"{number // 2}", "text": f"text {number} " + f"word{number} " * 20} for number in range(2_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    unsampled = files_corpus(path, heldout=0.1, limit=60_000, id_field="id", on_invalid="skip")
    config = run_config(corpus=replace(unsampled, sample=sample))
    here = context_at(tmp_path / "here", tmp_path / "work", config, {})
    elsewhere = replace(
        context_at(tmp_path / "elsewhere", tmp_path / "ahead", config, {}), engine=WithoutSharedMemory(1)
    )
    result: dict[str, Any] = build(here)
    assert result == build(elsewhere) and result["stopped_at"] == "limit"
    whole: dict[str, Any] = build_corpus(unsampled, tmp_path / "whole")
    assert 59_000 < result["bytes"] + result["unsampled"]["bytes"] == whole["bytes"] <= 60_000
    assert result["heldout"] == whole["heldout"]
    assert 0 < result["train"]["bytes"] <= whole["train"]["bytes"]
    assert (result["unsampled"]["bytes"] > 0) == (sample is not None)


def test_empty_split_or_sample_says_what_to_change(tmp_path: Path) -> None:
    rows = [{"text": f"text {number} " + f"w{number} " * 20, "lang": "en"} for number in range(90)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    for number, (fields, message) in enumerate(
        (
            ({"sample": 1e-6}, r"corpus\.sample=1e-06: none of the \d+ training documents is in the sample"),
            ({"heldout": 1e-9, "sample": 1e-9}, r"corpus\.sample=1e-09: none of the 90 training documents is in the"),
            ({"heldout": 1e-6, "group_field": "lang"}, r"corpus\.group_field=lang draws whole groups"),
        )
    ):
        with pytest.raises(DataError, match=message):
            build_corpus(files_corpus(path, **fields), tmp_path / f"{number}")  # type: ignore[arg-type]


def test_a_sample_of_pairs_counts_both_sides() -> None:
    pairs = [SizedDocument(None, b"%d" % number * 100, b"t") for number in range(50)]
    assert sum(of_size(20, pairs).keeps(pair.text) for pair in pairs) == 20
