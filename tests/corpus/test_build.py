"""The stage `corpus` on files: what it writes and what its record says."""

import bz2
import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.corpus import FilesCorpus
from paribus.corpus.artifact import SPLITS, CorpusArtifact, Document
from paribus.corpus.build import build
from paribus.errors import DataError
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.engines import Elsewhere
from support.real_data import RealData
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


def to_plain(path: Path) -> list[Document]:
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
    found = {document.id: document.text for document in to_plain(tmp_path / "corpus")}
    assert found == {f"en_head_0000.json.gz:{n}": row["raw_content"] for n, row in enumerate(rows, start=1)}


def test_the_record_counts_what_the_artefact_holds(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "tiny.jsonl", [{"text": text} for text in TINY])
    result = build_corpus(files_corpus(path), tmp_path / "corpus")
    corpus = CorpusArtifact(tmp_path / "corpus")
    assert result["documents"] == 24
    assert result["bytes"] == sum(len(text.encode()) for text in TINY)
    assert result["exact_duplicates"] == 16
    assert (result["skipped"], result["stopped_at"]) == ({}, "end")
    for split in SPLITS:
        assert result[split] == {"documents": corpus.count(split), "bytes": corpus.bytes(split)}
        assert corpus.count(split) > 0
    assert result["digest"] == digest([(f"tiny.jsonl:{line}", text) for line, text in enumerate(TINY, 1)])


def test_a_tiny_corpus_keeps_its_pinned_digest(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "tiny.jsonl", [{"text": text} for text in TINY])
    result = build_corpus(files_corpus(path), tmp_path / "corpus")
    assert result["digest"] == "746e146c712dab69edccc2aae4f06cb7c002209949a814b01df1e0296a7efe85"
    assert result["heldout"] == {"documents": 9, "bytes": 204}


@settings(max_examples=40, deadline=None)
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
    read = {document.id: document.text for document in to_plain(folder / "corpus")}
    for path in folder.glob("?.*"):
        assert [read.pop(f"{path.name}:{position}") for position in range(1, len(texts) + 1)] == texts
    assert read == {}


def test_a_plain_text_file_is_a_document_lines_or_paragraphs(tmp_path: Path) -> None:
    text = "\ufeffOne line\r\nand its next\n\n  \nSecond paragraph \n  with an indent\n" + "".join(
        f"\nmore {number}\n" for number in range(40)
    )
    (tmp_path / "a.txt").write_bytes(text.encode())
    for number in range(20):
        (tmp_path / f"other_{number}.txt").write_text(f"another {number}")
    read = {}
    for document in ("file", "line", "paragraph"):
        paths = [tmp_path / "a.txt"] if document != "file" else [tmp_path / "*.txt"]
        config = files_corpus(*paths, txt_document=document, heldout=0.3)
        build_corpus(config, tmp_path / document)
        read[document] = {document.id: document.text for document in to_plain(tmp_path / document)}
    assert read["file"]["a.txt:1"] == text[1:]
    assert [read["line"].get(f"a.txt:{n}") for n in range(1, 7)] == [
        "One line", "and its next", None, None, "Second paragraph ", "  with an indent",
    ]  # fmt: skip
    assert read["paragraph"]["a.txt:1"] == "One line\r\nand its next"
    assert read["paragraph"]["a.txt:5"] == "Second paragraph \n  with an indent"
    assert len(read["paragraph"]) == 42


def test_files_are_read_as_given_and_patterns_in_sorted_order(tmp_path: Path) -> None:
    for name in ("c", "a", "b", "z"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": f"{name} {number}"} for number in range(10)])
    config = files_corpus(tmp_path / "z.jsonl", tmp_path / "[abc].jsonl")
    result = build_corpus(config, tmp_path / "corpus")
    order = [(f"{name}.jsonl:{number + 1}", f"{name} {number}") for name in "zabc" for number in range(10)]
    assert result["digest"] == digest(order)


def test_files_of_one_name_keep_their_documents_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "part.jsonl", [{"text": f"{name} {number}"} for number in range(20)])
    build_corpus(files_corpus(tmp_path / "*" / "part.jsonl"), tmp_path / "corpus")
    assert {"00000/part.jsonl:1", "00001/part.jsonl:20"} <= {document.id for document in to_plain(tmp_path / "corpus")}


@pytest.mark.parametrize("limit", [400, 405])
def test_the_limit_takes_the_longest_prefix_of_both_splits_together(tmp_path: Path, limit: int) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": f"{number:010d}"} for number in range(100)])
    result = build_corpus(files_corpus(path, limit=limit), tmp_path / "corpus")
    assert (result["documents"], result["bytes"], result["stopped_at"]) == (40, 400, "limit")
    kept = {document.text for document in to_plain(tmp_path / "corpus")}
    assert kept == {f"{number:010d}" for number in range(40)}


def test_ids_come_from_their_field_where_one_is_named(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"key": n, "body": f"text {n}"} for n in range(30)])
    build_corpus(files_corpus(path, text_field="body", id_field="key"), tmp_path / "corpus")
    assert {document.id for document in to_plain(tmp_path / "corpus")} == {str(n) for n in range(30)}


def test_the_artefact_is_the_same_twice_and_whatever_the_workers(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": f"text {number}" * 50} for number in range(500)])
    results = [build_corpus(files_corpus(path), tmp_path / str(workers), workers=workers) for workers in (1, 2)]
    assert results[0] == results[1]
    for one in sorted((tmp_path / "1").rglob("*.parquet")):
        assert one.read_bytes() == (tmp_path / "2" / one.relative_to(tmp_path / "1")).read_bytes()


def test_the_declaration_of_human_rights_in_all_languages_is_read_whole(tmp_path: Path, real_data: RealData) -> None:
    path = real_data.declarations
    result = build_corpus(files_corpus(path, id_field="id", heldout=0.1, near_duplicate=None), tmp_path / "corpus")
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        wanted = [(row["id"], row["text"]) for row in map(json.loads, file)]
    assert (result["documents"], result["bytes"]) == (len(wanted), sum(len(text.encode()) for _, text in wanted))
    assert len(wanted) >= 180
    assert result["digest"] == digest(wanted)
    assert result["exact_duplicates"] == len(wanted) - len({text for _, text in wanted})


def test_a_sample_keeps_that_share_of_training_and_all_held_out_documents_in_their_order(tmp_path: Path) -> None:
    rows = [{"text": f"text {number % 900} " + f"word{number % 900} " * 20} for number in range(1_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    whole = build_corpus(files_corpus(path, heldout=0.1), tmp_path / "whole")
    half = build_corpus(files_corpus(path, heldout=0.1, sample=0.5), tmp_path / "half")
    kept, every = (
        {split: [document.text for document in CorpusArtifact(tmp_path / name).documents(split)] for split in SPLITS}
        for name in ("half", "whole")
    )
    assert kept["heldout"] == every["heldout"]
    assert abs(len(kept["train"]) / len(every["train"]) - 0.5) < 0.06
    chosen = set(kept["train"])
    assert kept["train"] == [text for text in every["train"] if text in chosen]
    left = [text for text in every["train"] if text not in chosen]
    assert half["unsampled"] == {"documents": len(left), "bytes": sum(len(text.encode()) for text in left)}
    assert whole["unsampled"] == {"documents": 0, "bytes": 0}
    assert half["documents"] + len(left) == whole["documents"] and half["digest"] != whole["digest"]
    quarter = build_corpus(files_corpus(path, heldout=0.1, sample=0.25), tmp_path / "quarter")
    assert {document.text for document in CorpusArtifact(tmp_path / "quarter").documents("train")} < chosen
    assert quarter["train"]["documents"] < half["train"]["documents"]


def first_by_hash(texts: list[str], size: int) -> set[str]:
    """Texts in the order of their hashes, until they have `size` bytes."""
    chosen: set[str] = set()
    for text in sorted(
        texts, key=lambda text: hashlib.blake2b(text.encode(), digest_size=8, person=b"sample").digest()
    ):
        if sum(len(each.encode()) for each in chosen) < size:
            chosen.add(text)
    return chosen


@pytest.mark.parametrize("sample", [0.3, 20_000])
def test_another_seed_is_another_sample_and_the_same_split(tmp_path: Path, sample: float) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": f"{number} is one of many"} for number in range(2_000)])
    kept, heldout = [], []
    for seed in (0, 1, 2**62):
        config = files_corpus(path, heldout=0.1, sample=sample, sample_seed=seed, near_duplicate=None)
        build_corpus(config, tmp_path / str(seed))
        corpus = CorpusArtifact(tmp_path / str(seed))
        kept.append({document.text for document in corpus.documents("train")})
        heldout.append([document.text for document in corpus.documents("heldout")])
    assert heldout[0] == heldout[1] == heldout[2]
    sizes = [len(each) for each in kept]
    assert max(sizes) < 1.2 * min(sizes)
    share = sizes[0] / 1_800
    # Two samples have what chance gives them in common.
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert len(kept[first] & kept[second]) / sizes[first] == pytest.approx(share, abs=0.08)


def test_a_sample_of_a_size_is_the_least_that_has_as_much_training_text(tmp_path: Path) -> None:
    rows = [{"text": f"text {number} " + f"word{number} " * (number % 40)} for number in range(1_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    whole = build_corpus(files_corpus(path, heldout=0.1), tmp_path / "whole")
    every = [document.text for document in CorpusArtifact(tmp_path / "whole").documents("train")]
    for size in (20_000, 90_000, 10**9):
        result = build_corpus(files_corpus(path, heldout=0.1, sample=size), tmp_path / f"{size}")
        chosen = first_by_hash(every, size)
        kept = [document.text for document in CorpusArtifact(tmp_path / f"{size}").documents("train")]
        assert kept == [text for text in every if text in chosen]
        assert result["documents"] + result["unsampled"]["documents"] == whole["documents"]
        assert result["train"]["bytes"] >= min(size, whole["train"]["bytes"])
        assert result["heldout"] == whole["heldout"]


@pytest.mark.parametrize("sample", [0.25, 6_000])
def test_a_limit_is_of_what_is_read_and_a_sample_is_chosen_of_that(tmp_path: Path, sample: float) -> None:
    rows = [{"text": f"text {number} " + f"word{number} " * 20} for number in range(2_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    config = files_corpus(path, heldout=0.1, sample=sample, limit=60_000)
    here = context_at(tmp_path / "here", tmp_path / "work", run_config(corpus=config), {})
    there = context_at(tmp_path / "there", tmp_path / "ahead", run_config(corpus=config), {})
    there = replace(there, engine=Elsewhere(1))
    found, ahead = build(here), build(there)
    assert found == ahead and found["stopped_at"] == "limit"
    unlimited = build_corpus(files_corpus(path, heldout=0.1, limit=60_000), tmp_path / "whole")
    assert found["bytes"] + found["unsampled"]["bytes"] == unlimited["bytes"] <= 60_000
    assert found["heldout"] == unlimited["heldout"] and 0 < found["train"]["bytes"] < unlimited["train"]["bytes"]


@pytest.mark.parametrize("sample", [None, 0.5, 20_000])
def test_a_limit_counts_no_record_that_is_left_out_wherever_files_are_read(
    tmp_path: Path, sample: float | None
) -> None:
    rows = [{"id": f"{number // 2}", "text": f"text {number} " + f"word{number} " * 20} for number in range(2_000)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    config = files_corpus(path, heldout=0.1, sample=sample, limit=60_000, id_field="id", on_invalid="skip")
    here = context_at(tmp_path / "here", tmp_path / "work", run_config(corpus=config), {})
    there = context_at(tmp_path / "there", tmp_path / "ahead", run_config(corpus=config), {})
    found, ahead = build(here), build(replace(there, engine=Elsewhere(1)))
    assert found == ahead and found["stopped_at"] == "limit"
    assert found["bytes"] + found["unsampled"]["bytes"] > 59_000


def test_a_sample_without_a_training_document_is_named(tmp_path: Path) -> None:
    rows = [{"text": f"text {number} " + f"w{number} " * 20} for number in range(90)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    with pytest.raises(DataError, match=r"corpus\.sample=1e-06: none of the \d+ training documents is in the sample"):
        build_corpus(files_corpus(path, sample=1e-6), tmp_path / "corpus")
    with pytest.raises(DataError, match=r"corpus\.sample=1e-09: none of the 5 training documents is in the sample"):
        few = write_jsonl(tmp_path / "few.jsonl", [{"text": f"text {number}"} for number in range(5)])
        build_corpus(files_corpus(few, heldout=1e-9, sample=1e-9), tmp_path / "few")


def test_few_groups_are_named_where_a_split_is_empty(tmp_path: Path) -> None:
    rows = [{"text": f"text {number} " + f"w{number} " * 20, "lang": "en"} for number in range(30)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    with pytest.raises(DataError, match=r"corpus\.group_field=lang draws whole groups"):
        build_corpus(files_corpus(path, heldout=1e-6, group_field="lang"), tmp_path / "corpus")
