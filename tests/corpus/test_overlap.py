"""Which side of the split documents are on, by a slow reference: groups and near copies are never on both."""

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.config.groups.corpus import FilesCorpus, ParallelCorpus
from paribus.corpus.artifact import SPLITS, CorpusArtifact
from paribus.errors import ConfigurationError, DataError
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.real_data import RealData
from support.stages import files

Row = dict[str, Any]
HELDOUT = 0.4


def grams(text: str) -> set[tuple[str, ...]]:
    """Runs of eight words, of a shorter text all its words; a Chinese character is a word."""
    words = re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())
    return {tuple(words[i : i + 8]) for i in range(max(1, len(words) - 7))} if words else {(text.lower(), "")}


def overlap(text: str, others: Sequence[str]) -> float:
    own = grams(text)
    return max((len(own & grams(other)) / len(own) for other in others), default=0.0)


def drawn(row: Row) -> bool:
    """Whether the row is drawn into the held-out split."""
    key = str(row["book"] if "book" in row else row["text"])
    return int(hashlib.blake2b(key.encode(), digest_size=8).hexdigest(), 16) < HELDOUT * 2**64


def moved(rows: Sequence[Row], threshold: float | None) -> set[int]:
    """Numbers of drawn rows that belong to training."""
    if threshold is None:
        return set()
    heldout = {number for number, row in enumerate(rows) if drawn(row)}
    train = [row["text"] for row in rows if not drawn(row)]
    moving = {number for number in heldout if overlap(rows[number]["text"], train) > threshold}
    while more := {
        one
        for one in heldout - moving
        for other in moving
        if overlap(rows[one]["text"], [rows[other]["text"]]) > threshold
        or overlap(rows[other]["text"], [rows[one]["text"]]) > threshold
        or ("book" in rows[one] and rows[one]["book"] == rows[other]["book"])
    }:
        moving |= more
    return moving


def check(directory: Path, rows: Sequence[Row], threshold: float | None, **fields: Any) -> dict[str, Any]:
    """Build the corpus of rows and compare it with the reference."""
    directory.mkdir()
    path = write_jsonl(directory / "rows.jsonl", [{"id": str(number), **row} for number, row in enumerate(rows)])
    config = files_corpus(path, id_field="id", heldout=HELDOUT, near_duplicate=threshold, **fields)
    moving = moved(rows, threshold)
    heldout = {number for number, row in enumerate(rows) if drawn(row)} - moving
    if len(heldout) in {0, len(rows)}:
        with pytest.raises(DataError):
            build_corpus(config, directory / "corpus")
        return {}
    result: dict[str, Any] = build_corpus(config, directory / "corpus")
    corpus = CorpusArtifact(directory / "corpus")
    train = [int(document.id) for document in corpus.documents("train")]
    assert train == sorted(set(range(len(rows))) - heldout)
    texts = [rows[number]["text"] for number in train]
    expected = {number: overlap(rows[number]["text"], texts) for number in sorted(heldout)}
    overlaps = [(int(document.id), document.overlap) for document in corpus.documents("heldout")]
    assert overlaps == list(expected.items())
    above = {f"above_{level}": sum(share > level / 100 for share in expected.values()) for level in (80, 50, 20)}
    mean = pytest.approx(sum(expected.values()) / len(expected))
    assert result["overlap"] == {"documents": len(expected), **above, "mean": mean}
    size = sum(len(rows[number]["text"].encode()) for number in moving)
    assert result["moved"] == {"documents": len(moving), "bytes": size}
    for split in SPLITS:
        assert result[split] == {"documents": corpus.count(split), "bytes": corpus.bytes(split)}
    return result


WORDS = st.lists(st.sampled_from(["a", "b", "B", "中", "文 ", "!"]), max_size=13).map(" ".join).filter(bool)
TEXTS = st.lists(WORDS, min_size=3, max_size=14)


@given(TEXTS, st.sampled_from([0.3, 0.5, 0.8, None]))
def test_near_copies_are_where_the_reference_has_them(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], threshold: float | None
) -> None:
    check(tmp_path_factory.mktemp("split") / "plain", [{"text": text} for text in texts], threshold)


@given(st.lists(st.tuples(WORDS, st.integers(0, 5)), min_size=4, max_size=14), st.sampled_from([0.5, 0.8, None]))
def test_groups_are_where_the_reference_has_them(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[str, int]], threshold: float | None
) -> None:
    rows = [{"text": text, "book": book} for text, book in pieces]
    check(tmp_path_factory.mktemp("split") / "grouped", rows, threshold, group_field="book")


def prose(start: int, words: int = 40) -> str:
    return " ".join(f"word{number}" for number in range(start, start + words))


def placed(text: str, *, heldout: bool) -> str:
    """The text with an ending by which it is drawn to that side."""
    endings = (f"{text} x{number}" for number in range(1000))
    return next(ending for ending in endings if drawn({"text": ending}) == heldout)


def test_documents_linked_to_a_near_copy_over_others_move_with_it(tmp_path: Path) -> None:
    train = placed(prose(0), heldout=False)
    near, second, third = (placed(prose(step), heldout=True) for step in (3, 6, 9))
    alone = placed(prose(1000), heldout=True)
    assert overlap(second, [train]) < 0.85 < overlap(near, [train])
    rows = [{"text": text} for text in (third, alone, train, second, near)]
    assert check(tmp_path / "corpus", rows, 0.85)["moved"]["documents"] == 3
    # One that has no more than the threshold is not linked.
    half = placed(prose(19), heldout=True)
    assert overlap(half, [near]) == 0.5
    rows = [{"text": text} for text in (train, near, half)]
    assert check(tmp_path / "at the threshold", rows, 0.5)["moved"]["documents"] == 1


def test_group_moves_whole_and_takes_near_copies_of_all_its_documents_along(tmp_path: Path) -> None:
    books = {side: [name for name in "abcdefghijkl" if drawn({"book": name}) == side] for side in (True, False)}
    places = [(0, books[False][0]), (1, books[True][0]), (500, books[True][0]), (501, books[True][1])]
    rows = [{"text": prose(start), "book": book} for start, book in [*places, (900, books[True][2])]]
    result = check(tmp_path / "corpus", rows, 0.8, group_field="book")
    assert (result["moved"]["documents"], result["heldout"]["documents"]) == (3, 1)


NEAR_COPIES = [{"text": prose(100 * (number // 3) + number % 3)} for number in range(60)]


def test_moved_documents_stand_where_the_source_has_them_in_every_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paribus.corpus.artifact.SHARD_BYTES", 700)
    monkeypatch.setattr(
        "paribus.corpus.artifact.CorpusWriter.__init__.__kwdefaults__", {"shard_bytes": 700, "pairs": False}
    )
    assert check(tmp_path / "corpus", NEAR_COPIES, 0.8)["moved"]["documents"] > 10
    assert len(CorpusArtifact(tmp_path / "corpus" / "corpus").shards("train")) > 5
    check(tmp_path / "near copies stay", NEAR_COPIES, None)


def test_artefact_is_the_same_whatever_the_workers(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", NEAR_COPIES)
    one, two = (build_corpus(files_corpus(path), tmp_path / str(workers), workers=workers) for workers in (1, 2))
    assert one == two and one["moved"] != {"documents": 0, "bytes": 0}
    assert files(tmp_path / "1") == files(tmp_path / "2")
    off = build_corpus(files_corpus(path, near_duplicate=None), tmp_path / "off")
    assert off["digest"] != one["digest"]


def test_pieces_of_plain_text_are_grouped_by_their_file_and_nothing_else(tmp_path: Path) -> None:
    for number in range(12):
        lines = [prose(1000 * number + 50 * line) for line in range(4)]
        (tmp_path / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")
    config = files_corpus(tmp_path / "*.txt", txt_document="line", group_field="file")
    build_corpus(config, tmp_path / "corpus")
    corpus = CorpusArtifact(tmp_path / "corpus")
    sources = [{document.source for document in corpus.documents(split)} for split in SPLITS]
    assert not sources[0] & sources[1]
    with pytest.raises(ConfigurationError, match=r"corpus.group_field=book: .*0.txt is plain text without fields; use"):
        build_corpus(dataclasses.replace(config, group_field="book"), tmp_path / "other")


def test_pairs_are_compared_by_both_sides_and_grouped_by_a_field_of_the_sources(tmp_path: Path) -> None:
    near = {"source": placed(prose(0), heldout=True), "target": prose(100)}
    half = {"source": placed(near["source"] + " y", heldout=True), "target": prose(5000, words=120)}
    rows = [{"source": placed(prose(0), heldout=False), "target": prose(100)}, near, half]
    path = write_jsonl(tmp_path / "pairs.jsonl", [{**row, "talk": str(number)} for number, row in enumerate(rows)])
    config = ParallelCorpus(source=(str(path),), heldout=HELDOUT)
    result: dict[str, Any] = build_corpus(config, tmp_path / "corpus")
    assert (result["moved"]["documents"], result["heldout"]["documents"]) == (1, 1)
    (document,) = CorpusArtifact(tmp_path / "corpus").documents("heldout")
    shared = max(len(grams(half["source"]) & grams(row["source"])) for row in rows[:2])
    assert document.overlap == shared / (len(grams(half["source"])) + len(grams(half["target"])))
    assert result["heldout"]["target_bytes"] == len(half["target"].encode())
    grouped = dataclasses.replace(config, heldout=0.6, group_field="talk", near_duplicate=None)
    assert build_corpus(grouped, tmp_path / "grouped")["documents"] == 3


def test_real_text_has_no_near_copies_left_and_the_same_overlaps_as_sets_of_words(
    tmp_path: Path, real_data: RealData
) -> None:
    config = FilesCorpus(paths=(str(real_data.english),), limit=8_000_000)
    before: dict[str, Any] = build_corpus(dataclasses.replace(config, near_duplicate=None), tmp_path / "before")
    after: dict[str, Any] = build_corpus(config, tmp_path / "after")
    assert before["overlap"]["above_80"] > 0 == after["overlap"]["above_80"]
    corpus = CorpusArtifact(tmp_path / "before")
    train = [grams(text) for text in corpus.texts("train")]
    for document in [*corpus.documents("heldout")][:20]:
        own = grams(document.text)
        assert document.overlap == max(len(own & other) for other in train) / len(own)
