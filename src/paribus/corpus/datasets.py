"""Documents of a `datasets` data set and the documentation strings of installed packages."""

import ast
import inspect
import os
import re
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from paribus.config.groups.corpus import HuggingFaceCorpus, PydocsCorpus
from paribus.corpus.files import Intake, Skipped, SourceDocument
from paribus.corpus.paths import Module, local_directory, modules, require_revision
from paribus.corpus.readers import Fields, record_of
from paribus.engine import Engine
from paribus.errors import ConfigurationError, DataError, InfrastructureError
from paribus.stage import cache_alone_without_network

MODULES_A_TASK = 32
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class HuggingFaceSource:
    """The documents of `corpus=huggingface`; ids are `<name>:<row>` unless a column holds them.

    Progress is in rows; the total is 0 where the data set does not say how many it has.
    """

    unit = "rows"
    hint = "choose another corpus.name, corpus.subset or corpus.split"

    def __init__(self, config: HuggingFaceCorpus) -> None:
        self._config = config
        self._fields = Fields(config.text_field, config.id_field, group=config.group_field)
        self._rows: Any = _open(config, [name for name, _ in self._fields.named()])
        self.done = 0.0
        self.total = float(_length(self._rows, config.split))

    def items(self) -> Generator[SourceDocument | Skipped, None, None]:
        """Documents row by row, and records left out, in order."""
        intake = Intake(self._config.on_invalid)
        directory = local_directory(self._config.name)
        label = self._config.name if directory is None else directory.resolve().name
        for position, row in enumerate(_rows(self._rows, self._config), 1):
            self.done = float(position)
            item = record_of(position, row, self._fields)
            yield intake.take(item, path=self._config.name, label=label, unit="row")


def _open(config: HuggingFaceCorpus, columns: list[str]) -> Any:
    import datasets

    directory = local_directory(config.name)
    if directory is None:
        require_revision(config)
    try:
        if directory is not None and (directory / "dataset_dict.json").is_file():
            return _split(datasets.DatasetDict.load_from_disk(os.fspath(directory)), config)
        if directory is not None and (directory / "state.json").is_file():
            return datasets.load_from_disk(os.fspath(directory))
        with nullcontext() if directory else cache_alone_without_network():
            builder = datasets.load_dataset_builder(
                config.name if directory is None else os.fspath(directory.absolute()),
                config.subset,
                revision=config.revision if directory is None else None,
            )
            rows = builder.as_streaming_dataset(split=config.split)
            # Read the columns in use alone: others may change their type between files of Parquet.
            if hasattr(builder.config, "columns") and {*columns} <= {*(rows.features or ())}:
                builder.config.columns = columns
                rows = builder.as_streaming_dataset(split=config.split)
            return rows
    except (datasets.exceptions.DatasetNotFoundError, ConnectionError) as error:
        raise InfrastructureError(f"corpus.name={config.name}: the data set cannot be fetched ({error})") from error
    except (ValueError, OSError, RuntimeError) as error:
        if several := re.search(r"(?:available configs: |Available: )\[(.+)\]", str(error)):
            asked = "required" if config.subset is None else f"{config.subset!r} is none"
            raise ConfigurationError(f"corpus.subset: {asked}; {config.name} has {several[1]}") from error
        raise DataError(f"corpus.name={config.name}: no data set that can be read ({error})") from error


def _split(dataset: Mapping[str, Any], config: HuggingFaceCorpus) -> Any:
    if config.split not in dataset:
        known = ", ".join(map(str, dataset))
        raise ConfigurationError(f"corpus.split={config.split}: {config.name} has no such split, only {known}")
    return dataset[config.split]


def _length(rows: Any, split: str) -> int:
    if hasattr(rows, "__len__"):
        return len(rows)
    splits = rows.info.splits or {}
    return splits[split].num_examples or 0 if split in splits else 0


def _rows(rows: Any, config: HuggingFaceCorpus) -> Iterator[Mapping[str, Any]]:
    from datasets.exceptions import DatasetsError

    position = 0
    try:
        for row in rows:
            position += 1
            yield row
    except (DatasetsError, ValueError, OSError) as error:
        raise DataError(f"{config.name}, after row {position}: cannot be read ({error})") from error
    except TypeError as error:  # `datasets` has the types of all files from the first, and does not name the column
        types = {name: str(kind) for name, kind in zip(rows.features, rows.features.arrow_schema.types, strict=True)}
        names = ", ".join(repr(name) for name, kind in types.items() if str(error).endswith(f" to {kind}"))
        raise DataError(
            f"{config.name}, after row {position}: a column changes its type, {names or 'one of lists or objects'} "
            f"({error}); corpus=files reads JSON lines and looks at no other column"
        ) from error


@dataclass(frozen=True, slots=True)
class ModuleDocs:
    """The documents of one source file: qualified names with cleaned docstrings, and records left out."""

    module: Module
    docstrings: list[tuple[str, str]]
    skipped: list[Skipped]


class PydocsSource:
    """The docstrings of `corpus=pydocs` of `min_bytes` and more, in the order of packages, paths and positions.

    Ids are `numpy/linalg/_linalg.py::norm`, and the path alone for a module's own docstring. A file that does not parse
    is yielded as skipped. Progress is in source files. ConfigurationError names the packages that are missing.
    """

    unit = "files"
    hint = "list more packages in corpus.packages or lower corpus.min_bytes"

    def __init__(self, config: PydocsCorpus, engine: Engine) -> None:
        self._config, self._engine = config, engine
        self._modules = modules(config.packages)
        self.done = 0.0
        self.total = float(len(self._modules))

    def items(self) -> Generator[SourceDocument | Skipped, None, None]:
        """Documents, and files and docstrings left out, in order."""
        starts = range(0, len(self._modules), MODULES_A_TASK)
        tasks = [self._modules[start : start + MODULES_A_TASK] for start in starts]
        for results in self._engine.map(partial(read_modules, min_bytes=self._config.min_bytes), tasks):
            for result in results:
                yield from result.skipped
                groups = {"file": result.module.relative, "package": result.module.package}
                group = None if self._config.group_field is None else groups[self._config.group_field]
                for name, text in result.docstrings:
                    yield SourceDocument(name, text, result.module.package, group=group)
                self.done += 1


def read_modules(task: Sequence[Module], min_bytes: int) -> list[ModuleDocs]:
    """The docstrings of some source files."""
    return [read_module(module, min_bytes) for module in task]


def read_module(module: Module, min_bytes: int) -> ModuleDocs:
    """The docstrings of one source file that have `min_bytes` of UTF-8 or more after `inspect.cleandoc`."""
    tree = _parsed(module)
    if isinstance(tree, Skipped):
        return ModuleDocs(module, [], [tree])
    docs, times = ModuleDocs(module, [], []), Counter[str]()
    for qualified, text in _docstrings(tree, module.relative):
        times[qualified] += 1
        name = qualified if times[qualified] == 1 else f"{qualified}#{times[qualified]}"  # defined again in the file
        try:
            if len(text.encode()) >= max(1, min_bytes):
                docs.docstrings.append((name, text))
        except UnicodeEncodeError as error:
            docs.skipped.append(Skipped(module.relative, None, "lone_surrogate", f"{name}: {error.reason}"))
    return docs


def _parsed(module: Module) -> ast.Module | Skipped:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            return ast.parse(module.path.read_bytes())
    except FileNotFoundError:
        return Skipped(module.relative, None, "no_such_file", "its package lists it, but it is not there")
    except (SyntaxError, ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        return Skipped(module.relative, line, "does_not_parse", f"{type(error).__name__}: {error}")


def _docstrings(tree: ast.Module, path: str) -> Iterator[tuple[str, str]]:
    """Names and cleaned docstrings in the order of their definitions, however deep."""
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, scope = stack.pop()
        if isinstance(node, (ast.Module, *DOCUMENTED)):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield f"{path}::{scope}" if scope else path, inspect.cleandoc(text)
        for child in reversed(list(_statements(node))):
            inner = f"{scope}.{child.name}".lstrip(".") if isinstance(child, DOCUMENTED) else scope
            stack.append((child, inner))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        children = getattr(node, name, ())
        yield from children if isinstance(children, list) else ()
