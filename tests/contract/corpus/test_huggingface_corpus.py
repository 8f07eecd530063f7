"""`corpus=huggingface`: data set directories on this machine, and hub names that need a revision."""

import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from paribus.config.groups.corpus import HuggingFaceCorpus
from paribus.corpus.artifact import SPLITS, CorpusArtifact
from paribus.errors import ConfigurationError, DataError
from support.corpora import build_corpus, write_jsonl

TEXTS = [f"人人生而自由 {number} naïve" for number in range(60)]
ROWS = {"key": list(range(60)), "text": TEXTS}


def config(name: Path | str, **fields: Any) -> HuggingFaceCorpus:
    return HuggingFaceCorpus(name=str(name), heldout=0.3, **fields)


def texts(path: Path) -> set[str]:
    corpus = CorpusArtifact(path)
    return {text for split in SPLITS for text in corpus.texts(split)}


def saved(path: Path) -> Path:
    datasets.Dataset.from_dict(ROWS).save_to_disk(path)
    return path


def saved_splits(path: Path) -> Path:
    datasets.DatasetDict({"train": datasets.Dataset.from_dict(ROWS)}).save_to_disk(path)
    return path


def json_lines(path: Path) -> Path:
    path.mkdir()
    write_jsonl(path / "train.jsonl", [{"key": key, "text": text} for key, text in enumerate(TEXTS)])
    return path


def parquet(path: Path) -> Path:
    path.mkdir()
    datasets.Dataset.from_dict(ROWS).to_parquet(path / "train-00000-of-00001.parquet")
    return path


@pytest.mark.parametrize("make", [saved, saved_splits, json_lines, parquet])
def test_a_data_set_directory_is_read_whole_and_in_order(tmp_path: Path, make: Any) -> None:
    name = make(tmp_path / "data")
    result = build_corpus(config(name, id_field="key"), tmp_path / "corpus")
    assert texts(tmp_path / "corpus") == set(TEXTS)
    sha = hashlib.sha256()
    for key, text in enumerate(TEXTS):
        sha.update(len(str(key)).to_bytes(8, "little") + len(text.encode()).to_bytes(8, "little"))
        sha.update(f"{key}{text}".encode())
    assert result["digest"] == sha.hexdigest()
    build_corpus(config(name), tmp_path / "numbered")
    numbered = {document.id for document in CorpusArtifact(tmp_path / "numbered").documents("train")}
    assert numbered < {f"data:{row}" for row in range(1, 61)}


@pytest.mark.parametrize("make", [saved_splits, parquet])
def test_an_unknown_split_or_column_is_named(tmp_path: Path, make: Any) -> None:
    name = make(tmp_path / "data")
    with pytest.raises((ConfigurationError, DataError), match=r"dev.*train"):
        build_corpus(config(name, split="dev"), tmp_path / "split")
    message = r"data, row 1: no field 'body' \(corpus.text_field\); it has 'key', 'text'"
    with pytest.raises(DataError, match=message):
        build_corpus(config(name, text_field="body"), tmp_path / "column")


def test_bad_rows_are_refused_or_counted(tmp_path: Path) -> None:
    name = tmp_path / "data"
    datasets.Dataset.from_dict({"text": [*TEXTS[:20], None, "", *TEXTS[20:]]}).save_to_disk(name)
    with pytest.raises(DataError, match=r"data, row 21: field 'text' \(corpus.text_field\) holds null"):
        build_corpus(config(name), tmp_path / "refused")
    result = build_corpus(config(name, on_invalid="skip"), tmp_path / "corpus")
    assert result["skipped"] == {"empty_text": 1, "text_not_a_string": 1}
    assert len((tmp_path / "corpus" / "skipped.jsonl").read_text().splitlines()) == 2


def test_a_hub_name_needs_a_revision_and_a_path_needs_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^corpus.revision: required, because 'owner/name' is no directory"):
        build_corpus(config("owner/name"), tmp_path / "hub")
    for name in (tmp_path / "none", "./none", "a/b/c"):
        with pytest.raises(DataError, match=r"^corpus.name=.*: no such directory"):
            build_corpus(config(name), tmp_path / f"path{hash(name)}")
    (tmp_path / "file.jsonl").write_text(json.dumps({"text": "x"}))
    with pytest.raises(DataError, match="for files use corpus=files"):
        build_corpus(config(tmp_path / "file.jsonl"), tmp_path / "file")


def test_code_that_comes_with_a_data_set_is_never_run(tmp_path: Path) -> None:
    name = json_lines(tmp_path / "data")
    (name / "data.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(DataError, match="no data set that can be read"):
        build_corpus(config(name), tmp_path / "corpus")
    assert not (tmp_path / "ran").exists()


def test_a_column_that_nobody_asked_for_may_have_another_type_in_each_file_of_parquet(tmp_path: Path) -> None:
    name = tmp_path / "data"
    name.mkdir()
    for number, more in enumerate((None, "text", 7)):
        rows = {"text": TEXTS[number * 20 :][:20], "more": [more] * 20}
        datasets.Dataset.from_dict(rows).to_parquet(name / f"train-{number}.parquet")
    assert build_corpus(config(name), tmp_path / "corpus")["documents"] == 60


@pytest.mark.parametrize(("subset", "told"), [(None, "required"), ("three", "'three' is none")])
def test_a_data_set_of_several_subsets_needs_one_by_name(tmp_path: Path, subset: str | None, told: str) -> None:
    name = json_lines(tmp_path / "data")
    files = "".join(f"- config_name: {each}\n  data_files: train.jsonl\n" for each in ("one", "two"))
    (name / "README.md").write_text(f"---\nconfigs:\n{files}---\n")
    with pytest.raises(ConfigurationError, match=rf"^corpus.subset: {told}; .* has 'one', 'two'$"):
        build_corpus(config(name, subset=subset), tmp_path / "corpus")
    assert build_corpus(config(name, subset="two"), tmp_path / "one")["documents"] == 60
