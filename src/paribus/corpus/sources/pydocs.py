"""Documentation strings of installed packages, read with `ast`: nothing of the packages is run."""

import ast
import inspect
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from paribus.config.groups.corpus import PydocsCorpus
from paribus.corpus.sources.distributions import Module, modules
from paribus.corpus.sources.source import Found, Skipped
from paribus.engine import Engine

MODULES_A_TASK = 32
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class ModuleDocs:
    """What one source file gave: qualified names with cleaned docstrings, and what was left out."""

    module: Module
    docstrings: list[tuple[str, str]]
    skipped: list[Skipped]


class PydocsSource:
    """The docstrings of `corpus=pydocs` of `min_bytes` and more, in the order of packages, paths and positions.

    Ids are `numpy/linalg/_linalg.py::norm`, and the path alone for a module's own docstring. A file that does not parse
    is yielded as skipped. Progress is in source files. ConfigurationError names the packages that are missing.
    """

    unit = "files"

    def __init__(self, config: PydocsCorpus, engine: Engine) -> None:
        self._config, self._engine = config, engine
        self._modules = modules(config.packages)
        self.done = 0.0
        self.total = float(len(self._modules))

    def hint(self) -> str:
        """What to change where there are too few documents."""
        return "list more packages in corpus.packages or lower corpus.min_bytes"

    def items(self) -> Generator[Found | Skipped, None, None]:
        """Documents in order, and the files that do not parse between them."""
        starts = range(0, len(self._modules), MODULES_A_TASK)
        tasks = [self._modules[start : start + MODULES_A_TASK] for start in starts]
        for results in self._engine.map(partial(read_modules, min_bytes=self._config.min_bytes), tasks):
            for result in results:
                yield from result.skipped
                groups = {"file": result.module.relative, "package": result.module.package}
                group = None if self._config.group_field is None else groups[self._config.group_field]
                for name, text in result.docstrings:
                    yield Found(name, text, result.module.package, group=group)
                self.done += 1


def read_modules(task: Sequence[Module], min_bytes: int) -> list[ModuleDocs]:
    """The docstrings of some source files."""
    return [read_module(module, min_bytes) for module in task]


def read_module(module: Module, min_bytes: int) -> ModuleDocs:
    """The docstrings of one source file that have `min_bytes` of UTF-8 or more after `inspect.cleandoc`."""
    tree = _parsed(module)
    if isinstance(tree, Skipped):
        return ModuleDocs(module, [], [tree])
    found = ModuleDocs(module, [], [])
    for name, text in _unique(_docstrings(tree, module.relative)):
        try:
            if len(text.encode()) >= max(1, min_bytes):
                found.docstrings.append((name, text))
        except UnicodeEncodeError as error:
            found.skipped.append(Skipped(module.relative, None, "lone_surrogate", f"{name}: {error.reason}"))
    return found


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
        stack += [(child, _scope(child, scope)) for child in reversed(list(_statements(node)))]


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        children = getattr(node, name, ())
        yield from children if isinstance(children, list) else ()


def _scope(node: ast.AST, scope: str) -> str:
    if not isinstance(node, DOCUMENTED):
        return scope
    return f"{scope}.{node.name}" if scope else node.name


def _unique(docstrings: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The same with `#2`, `#3` after names that are defined again in the file."""
    times: Counter[str] = Counter()
    for name, text in docstrings:
        times[name] += 1
        yield name if times[name] == 1 else f"{name}#{times[name]}", text
