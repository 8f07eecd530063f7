"""Tasks of lm-eval and of the user's own: their names, their YAML, which of it can be scored here, and their records.

Functions that the YAML names are not loaded. Records are JSON lines in `evaluation.data`, from the hub, or where the
user's YAML says.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml  # type: ignore[import-untyped]

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError, DataError, Problem
from paribus.evaluation.benchmarks import is_ours, task_names
from paribus.evaluation.data_files import (
    TEXT_SET_NAME,
    DataFile,
    Splits,
    load_data_set,
    read_lines,
    split_file,
    write_some,
    write_splits,
)
from paribus.evaluation.items import split_off
from paribus.stage import JSON
from paribus.store.files import FileDigests

SCORED_METRICS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "multiple_choice": ("acc", "acc_norm", "acc_bytes", "exact_match"),
        "loglikelihood": ("acc", "perplexity"),
        "generate_until": ("exact_match",),
    }
)
"""Metrics of lm-eval that are means over items, by kind of task; others are left out."""
_DEFAULT_METRICS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"multiple_choice": ("acc", "acc_norm"), "loglikelihood": ("perplexity", "acc"), "generate_until": ("exact_match",)}
)
"""Metrics that lm-eval takes where a task names none."""
_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "class": "is written in Python",
        "process_results": "computes its measures in Python (process_results)",
        "custom_dataset": "makes its data in Python (custom_dataset)",
        "use_prompt": "takes its prompt from another package (use_prompt)",
        "doc_to_image": "asks about images",
        "doc_to_audio": "asks about sound",
        "unsafe_code": "runs what the model wrote",
    }
)
"""Fields of tasks that cannot be stored as items with answers."""
TEXT_FIELDS = ("doc_to_text", "doc_to_choice", "doc_to_target")
"""Fields of which lm-eval makes an item; all but multiple_choice may do without choices."""
_SAMPLERS = ("default", "first_n")


@dataclass(frozen=True)
class Definition:
    """One task."""

    name: str
    path: Path
    """YAML file of the task."""
    root: Path
    """The directory it was found in: lm-eval's or `evaluation.include_path`."""

    @cached_property
    def config(self) -> dict[str, Any]:
        """Contents of the YAML; DataError where it cannot be read."""
        return read_yaml(self.path)

    @property
    def ours(self) -> bool:
        """True if it is of the user's directory, and not of lm-eval."""
        return self.root != harness_folder()

    @property
    def kind(self) -> str:
        """lm-eval's `output_type`."""
        return str(self.config.get("output_type", "generate_until"))

    @property
    def scored_split(self) -> str:
        """Split that is scored, by lm-eval's rule."""
        return str(self.config.get("test_split") or self.config.get("validation_split") or "")

    @property
    def fewshot(self) -> Mapping[str, Any]:
        """Options of examples alone."""
        settings = self.config.get("fewshot_config")
        return settings if isinstance(settings, dict) else {}

    @property
    def fewshot_split(self) -> str | None:
        """Split that examples come from, by lm-eval's rule; None where the YAML has them, or the scored one has."""
        named = self.fewshot.get("split") or self.config.get("fewshot_split")
        if not named and self.fewshot.get("samples") is not None:
            return None
        split = named or self.config.get("training_split") or self.config.get("validation_split")
        return str(split) if split and split != self.scored_split else None

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The entries of `metric_list` that are means over items, with what lm-eval takes for granted."""
        defaults = {"aggregation": "mean", "higher_is_better": True}
        return [defaults | entry for entry in self._metric_list if self._is_mean(entry)]

    @property
    def left_out(self) -> list[str]:
        """Names of its other metrics."""
        return [_value_text(entry.get("metric")) for entry in self._metric_list if not self._is_mean(entry)]

    @property
    def _metric_list(self) -> list[dict[str, Any]]:
        return self.config.get("metric_list") or [{"metric": name} for name in _DEFAULT_METRICS[self.kind]]

    def _is_mean(self, entry: Mapping[str, Any]) -> bool:
        name = entry.get("metric")
        right = "perplexity" if name == "perplexity" else "mean"
        known = name in SCORED_METRICS[self.kind] and entry.get("aggregation", right) == right
        return known and not entry.get("hf_evaluate") and not any(functions_in(entry))

    def problem(self) -> str | None:
        """Why it cannot be scored here; None where it can."""
        return next(self._problems(), None)

    def _problems(self) -> Iterator[str]:
        config = self.config
        yield from (reason for field, reason in _ELSEWHERE.items() if config.get(field))
        if self.kind not in SCORED_METRICS:
            hint = "; name its texts in evaluation.texts" if self.kind == "loglikelihood_rolling" else ""
            yield f"has output_type {self.kind}, and {', '.join(SCORED_METRICS)} can be scored{hint}"
            return
        needed = TEXT_FIELDS if self.kind == "multiple_choice" else (TEXT_FIELDS[0], TEXT_FIELDS[-1])
        if lacking := [field for field in needed if config.get(field) is None]:
            yield f"lacks {' and '.join(lacking)}, of which its items are made"
        if TEXT_SET_NAME.fullmatch(self.name) is None:
            yield "has a name that no file and metric can have"
        if int(config.get("repeats") or 1) > 1:
            yield f"asks {config['repeats']} times for each answer (repeats)"
        how = config.get("generation_kwargs") or {}
        if how.get("do_sample") or float(how.get("temperature") or 0):
            yield "draws its answers by chance (generation_kwargs); answers are written greedily here"
        if not self.metrics:
            scored = ", ".join(SCORED_METRICS[self.kind])
            yield f"is measured by {', '.join(self.left_out)} alone; of a task of its kind {scored} can be scored"
        if any(functions_in(config.get("filter_list"))):
            yield "filters answers in Python (filter_list)"
        if self.fewshot.get("sampler", "default") not in _SAMPLERS:
            yield f"draws its examples by {_value_text(self.fewshot['sampler'])}; {' and '.join(_SAMPLERS)} are known"
        yield from (
            f"names the split {split!r}, which is no name of a file"
            for split in (self.scored_split, self.fewshot_split)
            if split is not None and TEXT_SET_NAME.fullmatch(split) is None
        )
        yield from (
            f"names !function {function.qualified}, which is no file below {self.root} and so cannot be pinned"
            for function in functions_in(config)
            if not _below(function.file, (self.root, harness_folder()))
        )

    def pin(self) -> str:
        """SHA-256 of what the YAML says, with functions by their names."""
        text = json.dumps(self.config, ensure_ascii=False, default=self._written)
        return hashlib.sha256(text.encode()).hexdigest()

    def _written(self, value: Any) -> str:
        if not isinstance(value, Function):
            return str(value)
        owner = next(folder for folder in (self.root, harness_folder()) if _below(value.file, (folder,)))
        return f"!function {value.folder.relative_to(owner.resolve()).as_posix()}/{value.qualified}"

    def code(self) -> list[Path]:
        """The Python files that a task of the user's may run: all below the directory, since one imports another."""
        if not self.ours or not any(functions_in(self.config)):
            return []
        return sorted(self.root.rglob("*.py"))


def _value_text(value: Any) -> str:
    return f"!function {value.qualified}" if isinstance(value, Function) else str(value)


def _below(file: Path, folders: tuple[Path, ...]) -> bool:
    return file.is_file() and any(file.resolve().is_relative_to(folder.resolve()) for folder in folders)


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
    """Folder of the YAML file."""
    qualified: str
    """Module and name, as the file has them: `utils.process_docs`."""

    @property
    def file(self) -> Path:
        """File of its module, if that lies beside the YAML file."""
        return self.folder / f"{self.qualified.rpartition('.')[0].replace('.', '/')}.py"

    @property
    def name(self) -> str:
        """Name of the function in the module."""
        return self.qualified.rpartition(".")[2]


@dataclass(frozen=True)
class Names:
    """Tasks, groups and tags that a directory of YAML files defines."""

    tasks: Mapping[str, Path]
    groups: Mapping[str, Path]
    tags: Mapping[str, tuple[str, ...]]
    """Tasks whose own file has them."""
    again: Mapping[str, Path]
    """The second file of each task that several files name."""


def harness_folder() -> Path:
    """The directory of lm-eval's own tasks."""
    spec = find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("lm_eval is not installed")
    return Path(spec.submodule_search_locations[0]) / "tasks"


@lru_cache(maxsize=1)
def harness_names() -> Names:
    """Names that lm-eval itself defines, which reads some ten thousand small files."""
    return names_in(harness_folder())


def names_in(folder: Path) -> Names:
    """Tasks, groups and tags by the lines that name them; of two files with one name the first by path counts."""
    tasks: dict[str, Path] = {}
    groups: dict[str, Path] = {}
    tags: dict[str, list[str]] = {}
    again: dict[str, Path] = {}
    files = (path for path in folder.rglob("*.yaml") if not _NO_TASKS & set(path.parts))
    for path in sorted(files, key=Path.as_posix):
        text = path.read_text(encoding="utf-8-sig", errors="replace")  # YAML may begin with a byte order mark
        named = {match["kind"]: match["name"] for match in _KIND_AND_NAME.finditer(text)}
        if "group" in named:
            groups.setdefault(named["group"], path)
        elif "task" in named and named["task"] in tasks:
            again.setdefault(named["task"], path)
        elif "task" in named:
            tasks[named["task"]] = path
            listed = re.sub(r"(?m)^[ \t]*-", "", match["tags"]) if (match := _TAGS.search(text)) else ""
            for tag in re.findall(r"[^\s\"'\[\]{},#]+", listed):
                tags.setdefault(tag, []).append(named["task"])
    return Names(tasks, groups, {tag: tuple(members) for tag, members in tags.items()}, again)


def read_yaml(path: Path, within: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Merge a file with those that it includes, its own words last. DataError where that is no task."""
    path = path.resolve()
    if path in within:
        raise DataError(f"{path}: includes itself")
    try:
        content = _yaml_loader(path.parent)(path.read_text(encoding="utf-8")).get_single_data()
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


def _yaml_loader(folder: Path) -> type[Any]:
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


def find_definition(config: EvaluationConfig, name: str) -> Definition:
    """The task of that name in `evaluation.include_path`, else in lm-eval; ConfigurationError for a `problem`."""
    if message := task_problem(config, name):
        raise ConfigurationError(Problem("evaluation.tasks", message))
    definition = _found(config, name)
    if definition is None:
        raise ValueError(f"{name} is a task of ours")
    return definition


def task_problem(config: EvaluationConfig, name: str) -> str | None:
    """Message on the name of a task; None for one that can be scored. DataError where YAML cannot be read."""
    included = _names(config.include_path)
    if is_ours(name):
        twice = included and {**included.tasks, **included.groups}.get(name)
        return f"{name} is a task of paribus; give that of {twice} another name" if twice else None
    definition = _found(config, name)
    if definition is None:
        return _unknown(name, included, config.include_path)
    if included and definition.ours and (again := included.again.get(name)):
        return f"{name} is the task of {definition.path} and of {again}; give one of them another name"
    reason = definition.problem()
    return f"{name} of {definition.path.name} {reason}; leave it out" if reason else None


def task_members(include_path: str | None, name: str) -> list[str]:
    """The tasks of a group or tag of `evaluation.include_path` or of lm-eval; none of what is a task or unknown.

    DataError where YAML cannot be read, ConfigurationError where there is no such directory.
    """
    places = [place for place in (_names(include_path), harness_names()) if place]
    return [] if any(name in place.tasks for place in places) else _members_in(name, places)


def is_borrowed(name: str, include_path: str | None) -> bool:
    """True if lm-eval, or `evaluation.include_path` where that is there, has a task, group or tag of that name."""
    included = _names(include_path) if include_path and Path(include_path).is_dir() else None
    places = [place for place in (included, harness_names()) if place]
    return any(name in names for place in places for names in (place.tasks, place.groups, place.tags))


def _names(include_path: str | None) -> Names | None:
    if include_path is None:
        return None
    folder = Path(include_path)
    if not folder.is_dir():
        raise ConfigurationError(Problem("evaluation.include_path", f"{folder} is not a directory"))
    return names_in(folder)


def _found(config: EvaluationConfig, name: str) -> Definition | None:
    included = _names(config.include_path)
    if included and config.include_path and name in included.tasks:
        return Definition(name, included.tasks[name], Path(config.include_path).absolute())
    path = harness_names().tasks.get(name)
    return Definition(name, path, harness_folder()) if path else None


def _unknown(name: str, included: Names | None, folder: str | None) -> str:
    places = [place for place in (included, harness_names()) if place]
    if any(name in place.groups or name in place.tags for place in places):
        listed = ", ".join(_members_in(name, places))
        advice = f"of tasks, which stands for {listed}; name them" if listed else "without tasks; leave it out"
        return f"{name} is a group {advice}"
    ours = task_names()
    known = list(dict.fromkeys([*ours, *(task for place in places for task in place.tasks)]))
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.6)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    own = "; evaluation.include_path=DIR makes tasks of your own known, a YAML file each"
    if included:
        listed = ", ".join([*included.tasks, *included.groups]) or "none: no YAML file there has a line `task: NAME`"
        own = f"; of evaluation.include_path={folder}: {listed}"
    return f"unknown task {name!r}; {hint}known: {', '.join(ours)}, and the tasks of lm-eval by its names{own}"


def _members_in(name: str, places: Sequence[Names]) -> list[str]:
    return list(dict.fromkeys(task for place in places for task in _names_members(name, place, ())))


def _names_members(name: str, names: Names, above: tuple[str, ...]) -> Iterator[str]:
    """The tasks of a group or tag; `above` are the groups that it stands in."""
    if name in above:
        raise DataError(Problem("evaluation.tasks", f"the group {name} of {names.groups[name]} stands in itself"))
    if name in names.groups:
        yield from _listed_members(read_yaml(names.groups[name]).get("task"), names, (*above, name))
    elif name in names.tags:
        # Tasks beside those that name the tag may have it from a file that they include.
        folders = {names.tasks[task].parent for task in names.tags[name]}
        for task, path in names.tasks.items():
            if path.parent in folders:
                tags = read_yaml(path).get("tag") or []
                if name in (tags if isinstance(tags, list) else [tags]):
                    yield task


def _listed_members(members: Any, names: Names, above: tuple[str, ...]) -> Iterator[str]:
    for member in members if isinstance(members, list) else [members]:
        if isinstance(member, dict) and isinstance(member.get("task"), list):
            yield from _listed_members(member["task"], names, above)
            continue
        task = str(member.get("task") or member.get("group") if isinstance(member, dict) else member)
        yield from _names_members(task, names, above) if task in names.groups or task in names.tags else (task,)


SplitFiles = tuple[Path, Path | None]
"""Files with the scored records of a task and with its examples, None where there is no file of them."""


def split_files(config: EvaluationConfig, task: Definition) -> SplitFiles:
    """The files; ConfigurationError where `evaluation.data` is null, DataError where they are missing."""
    if (named := _named_files(task)) is not None:
        scored = _split_path(task, named, task.scored_split)
        return scored, _split_path(task, named, task.fewshot_split) if task.fewshot_split else None
    split = task.scored_split
    hint = "; evaluation.source=hub fetches it"
    scored = DataFile(f"task {task.name}", task.name, (f"{split}.jsonl",), hint).find(config.data)
    fewshot = task.fewshot_split and split_file(scored.parent.parent, task.name, task.fewshot_split)
    return scored, fewshot or None


def fetch_records(config: EvaluationConfig, task: Definition) -> None:
    """Write the splits of the task's data set below `evaluation.data`, unless the scored one is there.

    Raises DataError where they can be had neither from the hub nor from the Hugging Face cache.
    """
    if config.data is None or _named_files(task) is not None:
        return
    data, split = Path(config.data), task.scored_split
    if split_file(data, task.name, split) is not None:
        return
    examples = [task.fewshot_split] if task.fewshot_split else []
    write_splits(data, task.name, (_load_task_splits(task), _data_set(task)), split, examples)


def lacks_examples(data: Path, task: Definition) -> bool:
    """True if the hub may have the split of the task's examples, which is not below `data`."""
    fetched = task.fewshot_split is not None and bool(task.config.get("dataset_path")) and _named_files(task) is None
    return fetched and split_file(data, task.name, str(task.fewshot_split)) is None


def fetch_examples(data: Path, task: Definition) -> None:
    """Write the split of the task's examples alone, where its data set has it; DataError where that cannot be had."""
    write_some(data, task.name, _load_task_splits(task), [str(task.fewshot_split)])


def _load_task_splits(task: Definition) -> Splits:
    if not task.config.get("dataset_path"):
        raise DataError(Problem("evaluation.source", f"task {task.name} names no data set (dataset_path)"))
    path, name = task.config["dataset_path"], task.config.get("dataset_name")
    splits: Splits = load_data_set(_data_set(task), task.name, path, name, **_arguments(task))
    return splits


def data_set_text(task: Definition) -> str:
    """The data set with the arguments that it is loaded with."""
    return f"{_data_set(task)} {json.dumps(_arguments(task), sort_keys=True, default=str)}"


def is_here(task: Definition) -> bool:
    """True if the data set is a directory of this machine, as `datasets` looks for it."""
    places = (task.config.get("dataset_path"), _arguments(task).get("data_dir"))
    return any(isinstance(place, str) and Path(place).is_dir() for place in places)


def _arguments(task: Definition) -> dict[str, Any]:
    return {key: value for key, value in _options(task).items() if key != "trust_remote_code"}


def _data_set(task: Definition) -> str:
    path, name = task.config.get("dataset_path"), task.config.get("dataset_name")
    return f"{path} ({name})" if name else str(path)


def read_split(path: Path, task: Definition) -> list[dict[str, Any]]:
    """The records of a file, in order; DataError names file and line."""
    return list(read_lines(path, f"task {task.name}", lambda _, record: dict(record)))


def _options(task: Definition) -> Mapping[str, Any]:
    options = task.config.get("dataset_kwargs")
    return options if isinstance(options, dict) else {}


def _named_files(task: Definition) -> Mapping[str, Any] | None:
    """The files that the YAML itself names, by split; None where its data set is the hub's."""
    files = _options(task).get("data_files")
    if task.config.get("dataset_path") != "json" or files is None or "://" in json.dumps(files, default=str):
        return None
    return files if isinstance(files, dict) else {"train": files}  # so `datasets` calls a file without a split


def _split_path(task: Definition, files: Mapping[str, Any], split: str) -> Path:
    given = files.get(split)
    chosen = given[0] if isinstance(given, list) and len(given) == 1 else given
    if not isinstance(chosen, str):
        where = f"for the split {split!r} in dataset_kwargs.data_files"
        message = f"{task.path} must name one file of JSON lines {where}, not {given!r}"
        raise DataError(Problem("evaluation.include_path", message))
    path = task.path.parent / chosen
    if not path.is_file():
        raise DataError(Problem("evaluation.include_path", f"task {task.name} reads {path}, which is not there"))
    return path


def pinned(task: Definition, files: SplitFiles, digests: FileDigests) -> dict[str, JSON]:
    """Version of lm-eval, and digests of the task's YAML, of a user's Python files beside it, and of the records."""
    scored, examples = files
    code: dict[str, JSON] = {path.relative_to(task.root).as_posix(): digests.of(path) for path in task.code()}
    return {
        "lm_eval": version("lm_eval"),
        "task": task.pin(),
        **({"code": code} if code else {}),
        "scored": digests.of(scored),
        "fewshot": digests.of(examples) if examples else None,
    }


def count_examples(task: Definition, files: SplitFiles, shots: int) -> int:
    """Examples there may be, by the records alone."""
    scored, fewshot = files
    if fewshot is not None:
        return len(read_split(fewshot, task))
    if (samples := task.fewshot.get("samples")) is not None:
        return len(samples) if isinstance(samples, list) else shots
    return split_off(len(read_split(scored, task)), shots)
