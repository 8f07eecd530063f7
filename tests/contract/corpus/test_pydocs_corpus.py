"""`corpus=pydocs`: docstrings of installed packages, never imported, in a fixed order."""

import ast
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.config.groups.corpus import PydocsCorpus
from paribus.corpus.artifact import SPLITS, CorpusArtifact
from paribus.corpus.datasets import read_module
from paribus.corpus.paths import Module, modules
from paribus.errors import ConfigurationError
from support.corpora import build_corpus

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


def module(path: Path, content: bytes) -> Module:
    path.write_bytes(content)
    return Module("package", "package/file.py", path)


def test_docstrings_come_in_source_order_under_qualified_names(tmp_path: Path) -> None:
    read = read_module(module(tmp_path / "file.py", SOURCE.encode()), min_bytes=0)
    assert read.docstrings == [
        ("package/file.py", "The module."),
        ("package/file.py::first", "First,\nindented."),
        ("package/file.py::Outer", "Outer."),
        ("package/file.py::Outer.value", "Getter."),
        ("package/file.py::Outer.value#2", "Setter."),
        ("package/file.py::Outer.value.inner", "Inner, naïve."),
        ("package/file.py::first#2", "Second."),
    ]


def test_the_smallest_size_counts_bytes_after_cleaning(tmp_path: Path) -> None:
    read = read_module(module(tmp_path / "file.py", SOURCE.encode()), min_bytes=len("Inner, naïve.".encode()))
    assert [name for name, _ in read.docstrings] == ["package/file.py::first", "package/file.py::Outer.value.inner"]


@pytest.mark.parametrize(
    ("content", "reason", "line"),
    [
        (b"x = 1\ndef f(:\n", "does_not_parse", 2),
        (b"x = '\xe9'\n", "does_not_parse", None),
        (b"x = 1\0", "does_not_parse", None),
        (b'"\\ud800"', "lone_surrogate", None),
    ],
)
def test_a_file_that_does_not_parse_is_counted(tmp_path: Path, content: bytes, reason: str, line: int | None) -> None:
    read = read_module(module(tmp_path / "file.py", content), min_bytes=0)
    assert read.docstrings == []
    assert [(skipped.file, skipped.reason) for skipped in read.skipped] == [("package/file.py", reason)]
    assert line is None or read.skipped[0].line == line


def test_all_missing_packages_are_named_at_once_with_what_to_install() -> None:
    with pytest.raises(ConfigurationError) as caught:
        modules(("numpy", "no-such-package", "sklearn", "numpy"))
    assert str(caught.value) == (
        "corpus.packages: the package 'no-such-package' is not installed; `pip install no-such-package` or leave it out"
        "; 'sklearn' is a module of the package 'scikit-learn'; write 'scikit-learn'; 'numpy' is listed more than once"
    )


def test_a_package_is_read_whole_and_in_order(tmp_path: Path) -> None:
    config = PydocsCorpus(packages=("zstandard", "hypothesis"), heldout=0.3)
    result = build_corpus(config, tmp_path / "corpus")
    assert result["packages"] == {name: importlib.metadata.version(name) for name in config.packages}
    wanted = set()
    for found in modules(config.packages):
        for node in ast.walk(ast.parse(found.path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = inspect.cleandoc(ast.get_docstring(node, clean=False) or "")
                wanted |= {text} if len(text.encode()) >= 200 else set()
    corpus = CorpusArtifact(tmp_path / "corpus")
    documents = [document for split in SPLITS for document in corpus.documents(split)]
    assert {document.text for document in documents} == wanted
    assert len({document.id for document in documents}) == len(documents) == result["documents"] > 100
    train = [document.source for document in corpus.documents("train")]
    assert train == sorted(train, key=config.packages.index)


def test_a_slice_is_the_same_with_any_number_of_workers(tmp_path: Path) -> None:
    config = PydocsCorpus(packages=("numpy",), limit=300_000)
    one, two = (build_corpus(config, tmp_path / str(workers), workers=workers) for workers in (1, 2))
    assert one == two
    assert 290_000 < int(str(one["bytes"])) <= 300_000
    assert one["stopped_at"] == "limit"


def test_packages_are_not_imported() -> None:
    code = (
        "import sys\n"
        "from paribus.config.groups.corpus import PydocsCorpus\n"
        "from paribus.corpus.datasets import PydocsSource\n"
        "from paribus.engine.local import LocalEngine\n"
        "source = PydocsSource(PydocsCorpus(packages=('matplotlib', 'sympy')), LocalEngine(1))\n"
        "next(source.items())\n"
        "assert not {'matplotlib', 'sympy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
