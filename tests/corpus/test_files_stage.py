"""A corpus of pairs of source and target, from files to encoded pairs."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.tokenization import BPETokenizer
from paribus.corpus.artifact import CorpusArtifact
from paribus.corpus.stage import fingerprint
from paribus.errors import ConfigurationError, DataError
from paribus.store.files import FileDigests
from paribus.tokenization.build import build_tokens, build_vocabulary
from paribus.tokenization.encoded_corpus import EncodedCorpus
from support.corpora import build_corpus, write_jsonl
from support.run_config import run_config
from support.stages import context_at

PAIRS = [(f"the {number} small cats", f"{number} kleine Katzen\u2028{number}") for number in range(40)]


def write_sides(directory: Path, pairs: list[tuple[str, str]]) -> ParallelCorpus:
    """Aligned files as WMT has them, the targets compressed."""
    (directory / "train.en").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    with gzip.open(directory / "train.de.gz", "wt", encoding="utf-8", newline="") as file:
        file.writelines(f"{target}\r\n" for _, target in pairs)
    return ParallelCorpus(
        source=(str(directory / "train.en"),), target=(str(directory / "train.de.gz"),), heldout=1 / 3
    )


def read(corpus: Path) -> list[tuple[str, str | None]]:
    artifact = CorpusArtifact(corpus)
    return [(each.text, each.target) for split in ("train", "heldout") for each in artifact.documents(split)]


def test_line_n_of_the_sources_belongs_to_line_n_of_the_targets(tmp_path: Path) -> None:
    result = build_corpus(write_sides(tmp_path, PAIRS), tmp_path / "corpus")
    assert sorted(read(tmp_path / "corpus")) == sorted(PAIRS)
    assert result["documents"] == len(PAIRS)
    assert result["bytes"] == sum(len(source.encode()) + len(target.encode()) for source, target in PAIRS)
    targets = sum(result[split]["target_bytes"] for split in ("train", "heldout"))
    assert targets == sum(len(target.encode()) for _, target in PAIRS)
    (first,) = (tmp_path / "corpus" / "train").iterdir()
    assert pq.read_schema(first).names == ["id", "text", "target", "source", "bytes"]
    assert {each.id for each in CorpusArtifact(tmp_path / "corpus").documents("train")} <= {
        f"train.en:{line}" for line in range(1, 41)
    }


def test_pairs_of_one_source_are_on_one_side_of_the_split(tmp_path: Path) -> None:
    result = build_corpus(write_sides(tmp_path, [*PAIRS, *((source, "x") for source, _ in PAIRS)]), tmp_path / "corpus")
    train, heldout = ({each.text for each in CorpusArtifact(tmp_path / "corpus").documents(split)} for split in
                      ("train", "heldout"))  # fmt: skip
    assert not train & heldout
    assert result["exact_duplicates"] == 0


def test_records_with_two_fields_give_the_same_pairs(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "pairs.jsonl", [{"en": source, "de": target} for source, target in PAIRS])
    config = ParallelCorpus(source=(str(tmp_path / "pairs.jsonl"),), source_field="en", target_field="de", heldout=0.3)
    build_corpus(config, tmp_path / "corpus")
    assert sorted(read(tmp_path / "corpus")) == sorted(PAIRS)
    wrong = ParallelCorpus(source=config.source, source_field="en", heldout=0.3)
    with pytest.raises(DataError, match=r"line 1: no field 'target' \(corpus.target_field\); it has 'en', 'de'"):
        build_corpus(wrong, tmp_path / "other")


@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_side_is_an_error_by_file_and_line_or_skipped_and_counted(tmp_path: Path, side: int) -> None:
    pairs = [*PAIRS[:7], ("", PAIRS[7][1]) if side == 0 else (PAIRS[7][0], ""), *PAIRS[8:]]
    config = write_sides(tmp_path, pairs)
    name = ("train.en", "train.de.gz")[side]
    with pytest.raises(DataError, match=rf"{name}, line 8: the text is empty.*corpus.on_invalid=skip"):
        build_corpus(config, tmp_path / "refused")
    skipping = ParallelCorpus(source=config.source, target=config.target, on_invalid="skip", heldout=0.3)
    result = build_corpus(skipping, tmp_path / "corpus")
    assert result["skipped"] == {"empty_text": 1}
    assert sorted(read(tmp_path / "corpus")) == sorted(PAIRS[:7] + PAIRS[8:])


@pytest.mark.parametrize("name", ["none.en", "none.jsonl"])
def test_files_without_a_pair_are_an_error_or_skipped_and_counted(tmp_path: Path, name: str) -> None:
    config = write_sides(tmp_path, PAIRS)
    source, target = tmp_path / name, (tmp_path / name).with_stem("nichts")
    for path in (source, target):
        path.write_text("" if name == "none.en" else "\n \n")
    both = replace(config, source=(*config.source, str(source)), target=(*(config.target or ()), str(target)))
    with pytest.raises(DataError, match=rf"{name}: the file .*corpus.on_invalid=skip"):
        build_corpus(both, tmp_path / "refused")
    result = build_corpus(replace(both, on_invalid="skip"), tmp_path / "corpus")
    assert (result["documents"], result["skipped"]) == (len(PAIRS), {"empty_file": 1})


def test_files_of_different_length_are_refused_by_name_and_line(tmp_path: Path) -> None:
    config = write_sides(tmp_path, PAIRS)
    (tmp_path / "train.en").write_text("one line\nanother\n")
    with pytest.raises(DataError, match=r"train.en ends after line 2, but .*train.de.gz goes on: .* not aligned"):
        build_corpus(config, tmp_path / "corpus")


def test_sides_that_cannot_be_aligned_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    config = write_sides(tmp_path, PAIRS)
    with pytest.raises(ConfigurationError, match=r"corpus.target: .*train.en is text and has no second field"):
        fingerprint(ParallelCorpus(source=config.source), FileDigests(tmp_path / "cache"))
    with pytest.raises(ConfigurationError, match=r"corpus.target: 1 files \(train.de.gz\), but corpus.source has 2"):
        fingerprint(
            ParallelCorpus(source=(*config.source, *(config.target or ())), target=config.target), FileDigests(tmp_path)
        )
    with pytest.raises(DataError, match=r"corpus.target: .*: no such file"):
        fingerprint(
            ParallelCorpus(source=config.source, target=(str(tmp_path / "none.de"),)), FileDigests(tmp_path / "cache")
        )


def test_both_sides_train_the_vocabulary_and_are_encoded_one_after_the_other(tmp_path: Path) -> None:
    config = run_config(
        corpus=write_sides(tmp_path, PAIRS), tokenizer=BPETokenizer(vocab_size=320, special_tokens=("<|endoftext|>",))
    )
    build_corpus(config.corpus, tmp_path / "corpus")
    inputs = {name: tmp_path / name for name in ("corpus", "vocabulary")}
    made = build_vocabulary(context_at(tmp_path / "vocabulary", tmp_path / "v.work", config, inputs))
    result = build_tokens(context_at(tmp_path / "tokens", tmp_path / "t.work", config, inputs))
    documents = list(CorpusArtifact(tmp_path / "corpus").documents("train"))
    encoded = EncodedCorpus(tmp_path / "tokens")
    assert made["bytes"] == sum(document.bytes for document in documents) == result["bytes"]
    assert {b" small", b" kleine"} <= {entry.bytes for entry in encoded.tokenizer.vocabulary}
    assert encoded.source_lengths is not None
    assert result["source_tokens"] == encoded.source_lengths.sum()
    for number, document in enumerate(documents):
        ids, length = encoded.document(number), encoded.source_lengths[number]
        np.testing.assert_array_equal(ids[:length], encoded.tokenizer.encode(document.text))
        np.testing.assert_array_equal(ids[length:], encoded.tokenizer.encode(document.target or ""))


def test_a_sample_of_pairs_has_as_much_text_in_its_targets(tmp_path: Path) -> None:
    config = write_sides(tmp_path, PAIRS)
    whole = build_corpus(config, tmp_path / "whole")["train"]["target_bytes"]
    found = build_corpus(replace(config, sample=whole // 2), tmp_path / "half")["train"]
    assert whole // 2 <= found["target_bytes"] < whole // 2 + max(len(target.encode()) for _, target in PAIRS)
