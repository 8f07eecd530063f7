"""The verb `paribus rerun`: run a recorded run again from nothing, and compare every artefact and its numbers."""

import dataclasses
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.checks import checked_run
from paribus.config.arguments import read_options
from paribus.config.identity import canonical, digest
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.graph import EVALUATION, FINETUNING, Node, build_graph, needed_for
from paribus.pipeline.prepared import run_identity
from paribus.pipeline.recorder import is_done
from paribus.pipeline.records import (
    UNREADABLE,
    find_run_id,
    is_reference,
    moved_config,
    read_metrics,
    read_run_record,
    require_run_record,
)
from paribus.pipeline.results import environment_changes, recorded_provenance
from paribus.pipeline.root import OutputRoot, named_root
from paribus.pipeline.run import JobFunction, check
from paribus.reporting.equality import flatten
from paribus.store import files
from paribus.store.artifacts import Artifact, Store
from paribus.store.claims import is_held
from paribus.store.files import read_object_if_any
from paribus.store.provenance import loaded_code, provenance
from paribus.training.stage import TRAINING

EXIT_DIFFERS = 1
MOST_NUMBERS = 30
"""Numbers that differ, of one artefact, that are printed."""
DEVICES = ("training.device", "evaluation.device", "embedder.device")
HELP = """usage: paribus rerun RUN [root=paribus_runs] [training.device=DEVICE ...]

Make a recorded run again, every stage from nothing, in a fresh directory below ROOT/reruns, and report what matched:
each artefact by the digest of its files and, of those that differ, the files, the scores of both and the first step at
which training parted. A rerun that was stopped or failed goes on where it was, if by the same code and packages. RUN is
an identifier as `paribus status`, a report or MLflow shows it, the beginning of one, or last.

  paribus status root=my/runs
  paribus rerun 01234567 root=my/runs
  paribus rerun 0123456789abcdef
  paribus rerun last training.device=cpu

Refused where it would not be the same run: source files, code versions or packages that a stage depends on changed, or
files are gone. The error names them, and the commit, uncommitted changes and versions that the run was made with;
docker/rerun of the repository checks those out first. Refused too where a device that the record names is not here:
training.device, evaluation.device and embedder.device may be given anew.

What a GPU had a part in, as the record of its training tells, has to agree in every loss of training and every bits per
byte up to 1 %, and other scores are shown; all else, and what training.deterministic makes, in every byte.

exit status: 0 all artefacts are identical, or agree so; 1 some differ or were not made; 2 refused
"""


def rerun_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus rerun RUN [root=...]`: 0 when all artefacts are identical or agree within `TOLERANCE`, else 1."""
    name, root, devices = _parse(arguments)
    run_id = find_run_id(name, root)
    try:
        original = _recorded_config(run_id, root, devices, console)
        if again := unfinished(original, run_id):
            _require_fit(again)
            message = f"going on with {again.root}, which was not finished; remove it to begin from nothing"
            console.print(message, markup=False, soft_wrap=True)
        else:
            again = _new_rerun(original, run_id)
    except DataError as error:  # files are gone: nothing was made, and nothing differs
        raise ConfigurationError(str(error)) from error
    JobFunction(loaded_code())(again)
    return _report(original, again, console)


def _recorded_config(run_id: str, root: Path, devices: Mapping[str, str], console: Console) -> RunConfig:
    """The configuration of a record; ConfigurationError or DataError where that would not be the same run here."""
    record = require_run_record(run_id, root)
    config = moved_config(record["config"], root)
    for path, device in devices.items():
        group, _, field = path.partition(".")
        if field not in config[group]:
            raise ConfigurationError(f"{path}: the {group} of this run has no {field}")
        config = config | {group: config[group] | {field: device}}
    original = checked_run(config | {"sweep": None})
    recorded = recorded_provenance(record, OutputRoot.of(original))
    gone = ["its artefacts are gone, and with them what it was made with"]
    changes = gone if recorded is None else list(environment_changes(recorded, provenance()))
    _refuse_changed(record, original, changes)
    for change in changes:
        console.print(f"not as recorded: {change}", style="yellow", markup=False, soft_wrap=True)
    return original


def _new_rerun(original: RunConfig, run_id: str) -> RunConfig:
    """The run's configuration in a new root, which is removed where this machine cannot make the run."""
    reruns = OutputRoot.of(original).reruns
    reruns.mkdir(exist_ok=True)
    again = made_again(original, Path(tempfile.mkdtemp(prefix=f"{run_id}-", dir=reruns)))
    try:
        _require_fit(again)
        files.write_json(Path(again.root) / CODE_FILE, {"code": loaded_code().digest})
    except BaseException:
        shutil.rmtree(again.root)
        raise
    return again


def _require_fit(again: RunConfig) -> None:
    check(again, tuple(needed_for(build_graph(again, OutputRoot.of(again).cache), again.until)))


def _parse(arguments: Sequence[str]) -> tuple[str, Path, dict[str, str]]:
    runs = [argument for argument in arguments if is_reference(argument) and not argument.startswith("-")]
    options = read_options([argument for argument in arguments if argument not in runs], ("root", *DEVICES))
    if len(runs) != 1:
        message = "rerun takes one run, by identifier or name, and, where it is not paribus_runs, root=..."
        raise ConfigurationError(message)
    return runs[0], named_root(options.pop("root", None)).path, options


def _refuse_changed(record: Mapping[str, Any], config: RunConfig, changes: Sequence[str]) -> None:
    """ConfigurationError where this code and these files would not give the keys that the record has."""
    nodes = build_graph(config, OutputRoot.of(config).cache)
    changed = [name for name, stage in record["stages"].items() if name not in nodes or nodes[name].key != stage["key"]]
    if changed:
        causes = [*causes_of_other_keys(record, config, nodes), *changes]
        listed = "".join(f"\n  {cause}" for cause in causes) or "\n  nothing that the record names"
        raise ConfigurationError(
            f"this would not be the same run: {', '.join(changed)} changed. Recorded:{listed}\n"
            "take the files, the commit and the versions of the record; docker/rerun of the repository checks them out"
        )


def _report(original: RunConfig, again: RunConfig, console: Console) -> int:
    roots = OutputRoot.of(original), OutputRoot.of(again)
    nodes = needed_for(build_graph(again, roots[1].cache), again.until)
    matches = [match(node, roots[0].store, roots[1].store) for node in nodes.values()]
    console.print(_artefact_table(matches))
    for line in (line for artefact in matches for line in _number_lines(artefact)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    same = sum(artefact.identical for artefact in matches)
    agree = sum(artefact.agrees for artefact in matches) - same
    also = f", {agree} within {TOLERANCE:.0%}, as computed on a GPU" if agree else ""
    message = f"{same} of {len(matches)} artefacts identical{also}; kept in {roots[1].path}"
    console.print(message, markup=False, soft_wrap=True)
    return 0 if same + agree == len(matches) else EXIT_DIFFERS


@dataclass(frozen=True)
class Mismatch:
    """A number that is not the same; NaN where one side lacks it."""

    measure: str
    step: int
    original: float
    again: float

    @property
    def size(self) -> float:
        """Distance of the two; infinite where one side has no number."""
        apart = abs(self.again - self.original)
        return math.inf if math.isnan(apart) else apart


@dataclass(frozen=True)
class Match:
    """One artefact in both roots."""

    stage: str
    original: str | None
    """Digest of the artefact's files (SHA-256, 12 characters); None where it is gone."""
    again: str | None
    files: tuple[str, ...] = ()
    """Files that differ."""
    numbers: int = 0
    """How many numbers its metrics have."""
    differences: tuple[Mismatch, ...] = ()
    losses: int = 0
    """How many of these are losses."""
    rounded: bool = False
    """True if its losses need only agree within `TOLERANCE`, since a GPU had a part in it."""

    @property
    def agrees(self) -> bool:
        """True if it is the same as far as may be expected of what it was computed on."""
        losses = [number for number in self.differences if LOSS.fullmatch(number.measure)]
        close = all(number.size <= TOLERANCE * abs(number.original) for number in losses)
        published = self.original is not None and self.again is not None
        comparable = self.losses > 0 and not set(EXACT_FILES).intersection(self.files)
        return self.identical or (self.rounded and published and comparable and close)

    @property
    def identical(self) -> bool:
        """True if every byte is the same."""
        return self.original is not None and self.original == self.again


def _artefact_table(matches: Sequence[Match]) -> Table:
    table = Table(title="Artefacts made again", title_justify="left")
    for heading in ("stage", "recorded", "again", "result", "files that differ"):
        table.add_column(heading, overflow="fold")
    for artefact in matches:
        word, names = Text(_result_words(artefact), "green" if artefact.agrees else "red"), ", ".join(artefact.files)
        table.add_row(artefact.stage, artefact.original or "-", artefact.again or "-", word, Text(names))
    return table


def _result_words(artefact: Match) -> str:
    if artefact.identical:
        return "identical"
    if artefact.agrees:
        return f"losses within {TOLERANCE:.0%}"
    if artefact.again is None:
        return "not made"
    return "the original is gone" if artefact.original is None else "differs"


def _number_lines(artefact: Match) -> Iterator[str]:
    """Numbers of an artefact that differ: the scores, and where training parted."""
    if artefact.stage in (EVALUATION, FINETUNING) and artefact.original and artefact.again:
        same = artefact.numbers - len(artefact.differences)
        yield f"{artefact.stage}: {same} of {artefact.numbers} scores equal"
        for number in sorted(artefact.differences, key=lambda number: -number.size)[:MOST_NUMBERS]:
            yield f"  step {_pair(number)} ({number.again - number.original:+.3g})"
        if len(artefact.differences) > MOST_NUMBERS:
            yield f"  and {len(artefact.differences) - MOST_NUMBERS} that differ less"
    elif artefact.differences:
        first, last = artefact.differences[0], artefact.differences[-1]
        yield f"{artefact.stage}: numbers part at step {_pair(first)}; the last that differs is of step {_pair(last)}"


def _pair(number: Mismatch) -> str:
    return f"{number.step}, {number.measure} {number.original:.6g}, again {number.again:.6g}"


LOSS = re.compile(r"train/loss|finetuning/.*/loss|eval/(.*/)?bits_per_byte")
EXACT_FILES = ("contexts.json", "readings.npy")
"""Files of a training that say what was read, which no device rounds."""
TOLERANCE = 0.01
"""How far losses that a GPU computed may be apart, as a share of the recorded one: its sums come in no fixed order."""

Numbers = Mapping[tuple[str, int], float]
"""Values by measure and step."""


def match(node: Node, original: Store, again: Store) -> Match:
    """Compare the artefact of a node in two stores."""
    before, after = original.find(*node.place), again.find(*node.place)
    if before is None or after is None:
        return Match(node.name, _files_digest(before), _files_digest(after))
    first, second = before.record()["files"], after.record()["files"]
    files = tuple(sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)))
    numbers = [{(name, step): value for name, value, step in read_metrics(made.path)} for made in (before, after)]
    counted = len(numbers[0].keys() | numbers[1].keys())
    losses = sum(bool(LOSS.fullmatch(measure)) for measure, _ in numbers[0])
    differences, rounded = _differences(*numbers), _is_rounded(node, original, again)
    return Match(node.name, _files_digest(before), _files_digest(after), files, counted, differences, losses, rounded)


def _is_rounded(node: Node, original: Store, again: Store) -> bool:
    """True if a GPU computed its training in either store, unless deterministically and on the same device in both."""
    training = node if node.stage.artefact == TRAINING.name else node.inputs.get(TRAINING.name)
    if training is None:
        return False
    trainings = [store.find(*training.place) for store in (original, again)]
    computed_on = [artifact.record()["result"]["computed_on"] for artifact in trainings if artifact is not None]
    repeated = training.config.training.deterministic and all(devices == computed_on[0] for devices in computed_on)
    return not repeated and any(not device.startswith("cpu ") for devices in computed_on for device in devices)


def _files_digest(artifact: Artifact | None) -> str | None:
    return None if artifact is None else digest(artifact.record()["files"])[:12]


def _differences(original: Numbers, again: Numbers) -> tuple[Mismatch, ...]:
    places = sorted(original.keys() | again.keys(), key=lambda place: (place[1], place[0]))
    pairs = [(*place, original.get(place, math.nan), again.get(place, math.nan)) for place in places]
    return tuple(Mismatch(*pair) for pair in pairs if repr(pair[2]) != repr(pair[3]))


LONGEST_VALUE = 80
"""Characters of a value that is no list."""
MOST_ENTRIES = 8
"""Entries of a list, of each side."""
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
"""A SHA-256, and the part of it by which people tell one from another."""


def causes_of_other_keys(record: Mapping[str, Any], config: RunConfig, nodes: Mapping[str, Node]) -> Iterator[str]:
    """A line for each thing that the record has otherwise, with both values; of lists, as of files, what differs."""
    for name, node in nodes.items():
        version = record["code_versions"].get(name)
        if version != node.stage.code_version:
            yield f"code version of stage {name} {version}, here {node.stage.code_version}"
    recorded, here = flatten(record["identity"]), flatten(run_identity(config, dict(nodes)))
    for path in sorted(recorded.keys() | here.keys()):
        before, now = recorded.get(path), here.get(path)
        if before != now:
            yield f"{path} {_shown(before, now)}, here {_shown(now, before)}"


def _shown(text: str | None, other: str | None) -> str:
    """A value in JSON for people, None for one that is not there; of two lists, what the other lacks."""
    value, beside = ([] if each is None else json.loads(each) for each in (text, other))
    if isinstance(value, list) and isinstance(beside, list):
        own, known = list(map(canonical, value)), set(map(canonical, beside))
        if set(own) != known:
            words = [_words(entry) for entry, key in zip(value, own, strict=True) if key not in known]
            more = [f"{len(words) - MOST_ENTRIES} more"] if len(words) > MOST_ENTRIES else []
            return _DIGEST.sub(r"\1", ", ".join([*words[:MOST_ENTRIES], *more])) if words else "absent"
    if text is None:
        return "absent"
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _words(entry: Any) -> str:
    return " ".join(map(_words, entry)) if isinstance(entry, list) else str(entry)


CODE_FILE = "rerun.json"
"""File in the root of a rerun with the code by which it was begun."""


def made_again(original: RunConfig, root: Path) -> RunConfig:
    """A recorded run in another root, of which no tracker is told."""
    untracked = dataclasses.replace(original.tracking, kind="none")
    return dataclasses.replace(original, root=str(root), tracking=untracked, experiment=None)


def unfinished(original: RunConfig, run_id: str) -> RunConfig | None:
    """The last rerun of a run by this code that was stopped or failed and is nobody's now; None without one."""
    begun = OutputRoot.of(original).reruns.glob(f"{run_id}-*")
    of_this_code = [path for path in begun if read_object_if_any(path / CODE_FILE).get("code") == loaded_code().digest]
    left = [again for again in (made_again(original, path) for path in of_this_code) if _is_unfinished(again, run_id)]
    return max(left, key=partial(_start_time, run_id), default=None)


def _start_time(run_id: str, again: RunConfig) -> float:
    record = read_run_record(OutputRoot.of(again).run(run_id))
    return float(record["started"]) if record else 0.0


def _is_unfinished(again: RunConfig, run_id: str) -> bool:
    root = OutputRoot.of(again)
    record = read_run_record(root.run(run_id))
    if record is None or record["status"] == UNREADABLE or is_held(root.run_claim(run_id), root.lease_seconds):
        return False
    same = checked_run(moved_config(record["config"], root.path) | {"sweep": None}) == again
    return same and not is_done(run_id, build_graph(again, root.cache), root, again.until)
