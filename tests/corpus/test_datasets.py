"""`corpus=huggingface`: data set directories on this machine, and hub names that need a revision."""

import ast
import hashlib
import importlib.metadata
import inspect
import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from paribus.config.groups.corpus import HuggingFaceCorpus, PydocsCorpus
from paribus.corpus.artifact import SPLITS, CorpusArtifact
from paribus.corpus.datasets import ModuleDocs, read_module
from paribus.corpus.paths import Module, modules
from paribus.errors import ConfigurationError, DataError
from support.corpora import build_corpus, write_jsonl

TEXTS = [f"人人生而自由 {number} naïve" for number in range(60)]
ROWS = {"key": list(range(60)), "text": TEXTS}


def config(name: Path | str, **fields: Any) -> HuggingFaceCorpus:
    return HuggingFaceCorpus(name=str(name), heldout=0.3, **fields)


def texts(path: Path) -> set[str]:
    corpus = CorpusArtifact(path)
    return {text for split in SPLITS for text in corpus.texts(split)}


def json_lines(path: Path) -> Path:
    path.mkdir()
    write_jsonl(path / "train.jsonl", [{"key": key, "text": text} for key, text in enumerate(TEXTS)])
    return path


def write_data_set(kind: str, path: Path) -> Path:
    rows = datasets.Dataset.from_dict(ROWS)
    if kind == "saved":
        rows.save_to_disk(path)
    elif kind == "saved_splits":
        datasets.DatasetDict({"train": rows}).save_to_disk(path)
    elif kind == "parquet":
        path.mkdir()
        rows.to_parquet(path / "train-00000-of-00001.parquet")
    else:
        json_lines(path)
    return path


@pytest.mark.parametrize("kind", ["saved", "saved_splits", "json_lines", "parquet"])
def test_data_set_directory_is_read_whole_and_in_order(tmp_path: Path, kind: str) -> None:
    name = write_data_set(kind, tmp_path / "data")
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


@pytest.mark.parametrize("kind", ["saved_splits", "parquet"])
def test_unknown_split_or_column_is_named(tmp_path: Path, kind: str) -> None:
    name = write_data_set(kind, tmp_path / "data")
    with pytest.raises((ConfigurationError, DataError), match=r"dev.*train"):
        build_corpus(config(name, split="dev"), tmp_path / "split")
    message = r"data, row 1: no field 'body' \(corpus.text_field\); it has 'key', 'text'"
    with pytest.raises(DataError, match=message):
        build_corpus(config(name, text_field="body"), tmp_path / "column")


def test_hub_name_needs_a_revision_and_a_path_needs_a_directory(tmp_path: Path) -> None:
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


def test_data_set_of_several_subsets_needs_one_by_name(tmp_path: Path) -> None:
    name = json_lines(tmp_path / "data")
    subsets = "".join(f"- config_name: {each}\n  data_files: train.jsonl\n" for each in ("one", "two"))
    (name / "README.md").write_text(f"---\nconfigs:\n{subsets}---\n")
    for subset, problem in ((None, "required"), ("three", "'three' is none")):
        with pytest.raises(ConfigurationError, match=rf"^corpus.subset: {problem}; .* has 'one', 'two'$"):
            build_corpus(config(name, subset=subset), tmp_path / f"{subset}")
    assert build_corpus(config(name, subset="two"), tmp_path / "two")["documents"] == 60


# `corpus=pydocs`: docstrings of installed packages, never imported, in a fixed order.


SOURCE = '''"""The module."""
async def first():
    """First,
        indented.
    """
if True:
    class Outer:
        """Outer."""
        @property
        def value(self):
            """Getter."""
        @value.setter
        def value(self, value):
            "Setter."
            def inner():
                """Inner, naïve."""
        x = 1
        """No docstring."""
else:
    def first():
        """Second."""
'''


def read(path: Path, content: bytes, min_bytes: int = 0) -> ModuleDocs:
    path.write_bytes(content)
    return read_module(Module("package", "package/file.py", path), min_bytes=min_bytes)


def test_docstrings_come_in_source_order_under_qualified_names(tmp_path: Path) -> None:
    assert read(tmp_path / "file.py", SOURCE.encode()).docstrings == [
        ("package/file.py", "The module."),
        ("package/file.py::first", "First,\nindented."),
        ("package/file.py::Outer", "Outer."),
        ("package/file.py::Outer.value", "Getter."),
        ("package/file.py::Outer.value#2", "Setter."),
        ("package/file.py::Outer.value.inner", "Inner, naïve."),
        ("package/file.py::first#2", "Second."),
    ]
    # The smallest size counts bytes after cleaning.
    long = read(tmp_path / "file.py", SOURCE.encode(), min_bytes=len("Inner, naïve.".encode())).docstrings
    assert [name for name, _ in long] == ["package/file.py::first", "package/file.py::Outer.value.inner"]


def test_all_missing_packages_are_named_at_once_with_what_to_install() -> None:
    with pytest.raises(ConfigurationError) as caught:
        modules(("numpy", "no-such-package", "sklearn", "numpy"))
    assert str(caught.value) == (
        "corpus.packages: the package 'no-such-package' is not installed; `pip install no-such-package` or leave it out"
        "; 'sklearn' is a module of the package 'scikit-learn'; write 'scikit-learn'; 'numpy' is listed more than once"
    )


def test_package_is_read_whole_and_in_order(tmp_path: Path) -> None:
    config = PydocsCorpus(packages=("zstandard", "hypothesis"), heldout=0.3)
    result = build_corpus(config, tmp_path / "corpus")
    assert result["packages"] == {name: importlib.metadata.version(name) for name in config.packages}
    expected = set()
    for module in modules(config.packages):
        for node in ast.walk(ast.parse(module.path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = inspect.cleandoc(ast.get_docstring(node, clean=False) or "")
                expected |= {text} if len(text.encode()) >= 200 else set()
    corpus = CorpusArtifact(tmp_path / "corpus")
    documents = [document for split in SPLITS for document in corpus.documents(split)]
    assert {document.text for document in documents} == expected
    assert len({document.id for document in documents}) == len(documents) == result["documents"] > 100
    train = [document.source for document in corpus.documents("train")]
    assert train == sorted(train, key=config.packages.index)
