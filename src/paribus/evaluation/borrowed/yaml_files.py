"""The YAML of lm-eval tasks, with what it includes; functions that it names are not loaded."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from paribus.errors import DataError

_KIND_AND_NAME = re.compile(
    r"""^["']?(?P<kind>task|group)["']?[ \t]*:[ \t]*["']?(?P<name>[^\s"'\[\]{},#]+)["']?[ \t]*(?:\#.*)?$""",
    re.MULTILINE,
)
_TAGS = re.compile(r"""^["']?tag["']?[ \t]*:(?P<tags>[^\n]*(?:\n[ \t]*-[^\n]*)*)""", re.MULTILINE)
_NO_TASKS = {"__pycache__", ".ipynb_checkpoints"}


@dataclass(frozen=True)
class Function:
    """A function of Python that a YAML file names by `!function`."""

    folder: Path
    """Where the YAML file lies."""
    qualified: str
    """Module and name, as the file has them: `utils.process_docs`."""

    @property
    def file(self) -> Path:
        """Its module, where that lies beside the YAML file."""
        return self.folder / f"{self.qualified.rpartition('.')[0].replace('.', '/')}.py"

    @property
    def name(self) -> str:
        """Its name in the module."""
        return self.qualified.rpartition(".")[2]


@dataclass(frozen=True)
class Names:
    """What a directory of YAML files defines."""

    tasks: Mapping[str, Path]
    groups: Mapping[str, Path]
    tags: Mapping[str, tuple[str, ...]]
    """Tasks whose own file has them."""
    again: Mapping[str, Path]
    """Of a task that several files name the second of them."""


def harness_folder() -> Path:
    """The directory of lm-eval's own tasks."""
    spec = find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("lm_eval is not installed")
    return Path(spec.submodule_search_locations[0]) / "tasks"


def harness_version() -> str:
    """That of the lm-eval that is installed."""
    return version("lm_eval")


@lru_cache(maxsize=1)
def harness_names() -> Names:
    """What lm-eval itself defines, which reads some ten thousand small files."""
    return names_in(harness_folder())


def names_in(folder: Path) -> Names:
    """Tasks, groups and tags by the lines that name them; of two files with one name the first by path counts."""
    tasks: dict[str, Path] = {}
    groups: dict[str, Path] = {}
    tags: dict[str, list[str]] = {}
    again: dict[str, Path] = {}
    for path in _files(folder):
        text = path.read_text(encoding="utf-8-sig", errors="replace")  # YAML may begin with a byte order mark
        found = {match["kind"]: match["name"] for match in _KIND_AND_NAME.finditer(text)}
        if "group" in found:
            groups.setdefault(found["group"], path)
        elif "task" in found and found["task"] in tasks:
            again.setdefault(found["task"], path)
        elif "task" in found:
            tasks[found["task"]] = path
            for tag in _tags(text):
                tags.setdefault(tag, []).append(found["task"])
    return Names(tasks, groups, {tag: tuple(members) for tag, members in tags.items()}, again)


def _files(folder: Path) -> Iterator[Path]:
    found = (path for path in folder.rglob("*.yaml") if not _NO_TASKS & set(path.parts))
    yield from sorted(found, key=Path.as_posix)


def _tags(text: str) -> list[str]:
    match = _TAGS.search(text)
    return re.findall(r"[^\s\"'\[\]{},#]+", re.sub(r"(?m)^[ \t]*-", "", match["tags"])) if match else []


def read_yaml(path: Path, within: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What a file and those that it includes say, its own words last. DataError where that is no task."""
    path = path.resolve()
    if path in within:
        raise DataError(f"{path}: includes itself")
    try:
        content = _loader(path.parent)(path.read_text(encoding="utf-8")).get_single_data()
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path}: no task that could be read ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: a task is a mapping of names to values, not {type(content).__name__}")
    included = content.pop("include", [])
    merged: dict[str, Any] = {}
    for other in included if isinstance(included, list) else [included]:
        merged |= {
            key: value
            for key, value in read_yaml(path.parent / str(other), (*within, path)).items()
            if key != "task_list"  # of the included file alone, as lm-eval has it
        }
    return merged | content


def _loader(folder: Path) -> type[Any]:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Plain data alone, as `safe_load` gives, and `!function` as the name of a function."""

    Loader.add_constructor("!function", lambda loader, node: Function(folder, str(loader.construct_scalar(node))))
    return Loader


def functions_in(value: Any) -> Iterator[Function]:
    """The functions that a value names, however deep."""
    if isinstance(value, Function):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from functions_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from functions_in(part)
