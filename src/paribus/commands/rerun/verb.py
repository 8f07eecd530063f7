"""Run a recorded run again from nothing and report what matched: artefacts, and the numbers of those that differ."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.checks import checked_run
from paribus.commands.matches import TOLERANCE, Match, Mismatch, match
from paribus.commands.rerun.again import in_empty_root, tell_code, unfinished
from paribus.commands.rerun.changes import causes_of_other_keys
from paribus.config.arguments import HELP_FLAGS, read_options
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.graph import EVALUATION, FINETUNING, build_graph, needed_for
from paribus.pipeline.records import UNREADABLE, find_run_id, is_reference, moved_config, read_run_record
from paribus.pipeline.results import environment_changes, recorded_provenance
from paribus.pipeline.root import OutputRoot, named_root
from paribus.pipeline.run import JobFunction, check
from paribus.store.provenance import loaded_code, provenance

EXIT_DIFFERS = 1
MOST_SHOWN = 30
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
    """`paribus rerun RUN [root=...]`: 0 when all artefacts came out the same, else 1."""
    if HELP_FLAGS & set(arguments):
        console.print(HELP, end="", markup=False, highlight=False, soft_wrap=True)
        return 0
    name, root, devices = _parse(arguments)
    run_id = find_run_id(name, root)
    with _refusing():
        original = _recorded(run_id, root, devices, console)
        again = _carried_on(original, run_id, console) or _empty_root(original, run_id)
    JobFunction(loaded_code())(again)
    return _report(original, again, console)


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse for files that are gone too: nothing was made, and nothing differs."""
    try:
        yield
    except DataError as error:
        raise ConfigurationError(str(error)) from error


def _recorded(run_id: str, root: Path, devices: Mapping[str, str], console: Console) -> RunConfig:
    """The configuration of a record; ConfigurationError or DataError where that would not be the same run here."""
    record = read_run_record(root / "runs" / run_id)
    if record is None:
        raise ConfigurationError(f"no run {run_id!r} below {root / 'runs'}; paribus status lists the runs of a command")
    if record["status"] == UNREADABLE:
        raise DataError(record["failure"]["message"])
    original = checked_run(_on(devices, moved_config(record["config"], root)) | {"sweep": None})
    changes = _changes(record, OutputRoot.of(original))
    _refuse_changed(record, original, changes)
    for change in changes:
        console.print(f"not as recorded: {change}", style="yellow", markup=False, soft_wrap=True)
    return original


def _carried_on(original: RunConfig, run_id: str, console: Console) -> RunConfig | None:
    """A rerun that was not finished, which is said."""
    again = unfinished(original, run_id)
    if again is not None:
        _require_fit(again)
        told = f"going on with {again.root}, which was not finished; remove it to begin from nothing"
        console.print(told, markup=False, soft_wrap=True)
    return again


def _empty_root(original: RunConfig, run_id: str) -> RunConfig:
    """The same run in a root of its own, which is not left where this machine could not make it."""
    again = in_empty_root(original, run_id)
    try:
        _require_fit(again)
        tell_code(again)
    except BaseException:
        shutil.rmtree(again.root)
        raise
    return again


def _require_fit(again: RunConfig) -> None:
    """ConfigurationError where this machine cannot make it."""
    check(again, tuple(needed_for(build_graph(again, OutputRoot.of(again).cache), again.until)))


def _parse(arguments: Sequence[str]) -> tuple[str, Path, dict[str, str]]:
    """A name of the run, the output root, and devices in place of those recorded."""
    runs = [argument for argument in arguments if is_reference(argument) and not argument.startswith("-")]
    options = read_options([argument for argument in arguments if argument not in runs], ("root", *DEVICES))
    if len(runs) != 1:
        raise ConfigurationError(
            "rerun takes one run, by identifier or name, and, where it is not paribus_runs, root=..."
        )
    return runs[0], named_root(options.pop("root", None)).path, options


def _on(devices: Mapping[str, str], config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the devices that were given; ConfigurationError for a field that it has not."""
    for path, device in devices.items():
        group, _, field = path.partition(".")
        if field not in config[group]:
            raise ConfigurationError(f"{path}: the {group} of this run has no {field}")
        config = config | {group: config[group] | {field: device}}
    return config


def _changes(record: Mapping[str, Any], root: OutputRoot) -> list[str]:
    recorded = recorded_provenance(record, root)
    return (
        ["its artefacts are gone, and with them what it was made with"]
        if recorded is None
        else [*environment_changes(recorded, provenance())]
    )


def _refuse_changed(record: Mapping[str, Any], config: RunConfig, changes: Sequence[str]) -> None:
    """What this code and these files would make must have the keys that the record has."""
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
    found = [match(node, roots[0].store, roots[1].store) for node in nodes.values()]
    console.print(_artefacts(found))
    for one in found:
        for line in _numbers(one):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    same = sum(one.identical for one in found)
    agree = sum(one.agrees for one in found) - same
    also = f", {agree} within {TOLERANCE:.0%}, as computed on a GPU" if agree else ""
    told = f"{same} of {len(found)} artefacts identical{also}; kept in {roots[1].path}"
    console.print(told, markup=False, soft_wrap=True)
    return 0 if same + agree == len(found) else EXIT_DIFFERS


def _artefacts(matches: Sequence[Match]) -> Table:
    table = Table(title="Artefacts made again", title_justify="left")
    for heading in ("stage", "recorded", "again", "result", "files that differ"):
        table.add_column(heading, overflow="fold")
    for one in matches:
        style, word = ("green" if one.agrees else "red"), _result(one)
        table.add_row(one.stage, one.original or "-", one.again or "-", Text(word, style), Text(", ".join(one.files)))
    return table


def _result(one: Match) -> str:
    if one.identical:
        return "identical"
    if one.agrees:
        return f"losses within {TOLERANCE:.0%}"
    if one.again is None:
        return "not made"
    return "the original is gone" if one.original is None else "differs"


def _numbers(one: Match) -> Iterator[str]:
    """What became of the numbers of an artefact: the scores that differ, where training parted."""
    if one.stage in (EVALUATION, FINETUNING) and one.original and one.again:
        same = one.numbers - len(one.differences)
        yield f"{one.stage}: {same} of {one.numbers} scores equal"
        for number in sorted(one.differences, key=lambda number: -number.size)[:MOST_SHOWN]:
            yield f"  step {_pair(number)} ({number.again - number.original:+.3g})"
        if len(one.differences) > MOST_SHOWN:
            yield f"  and {len(one.differences) - MOST_SHOWN} that differ less"
    elif one.differences:
        first, last = one.differences[0], one.differences[-1]
        yield f"{one.stage}: numbers part at step {_pair(first)}; the last that differs is of step {_pair(last)}"


def _pair(number: Mismatch) -> str:
    return f"{number.step}, {number.measure} {number.original:.6g}, again {number.again:.6g}"
