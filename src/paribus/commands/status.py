"""The verb `paribus status`: the state of the runs of a command or an output root, and why some failed."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.commands.selection import names_nothing, root_of, select
from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.config.metrics import BITS, main_scores
from paribus.config.units import format_age
from paribus.pipeline.display import print_json
from paribus.pipeline.failures import Failure
from paribus.pipeline.graph import away
from paribus.pipeline.prepared import PreparedRun, labels
from paribus.pipeline.recorder import NOT_STARTED, STOPPED, RunState, is_done, read_state
from paribus.pipeline.records import SweepRecord, read_sweeps
from paribus.pipeline.root import DONE, FAILED, INCOMPLETE, RUNNING, Inventory, OutputRoot, take_inventory
from paribus.store.claims import describe

SHORT = 8
"""Characters of an identifier, enough for the verbs that take one."""
STYLES = {DONE: "green", FAILED: "red", "interrupted": "red", INCOMPLETE: "red", RUNNING: "yellow"}

EXPLAINED = ("configuration", "data", "interrupted")
"""Classes of failures whose message says what to change."""


def status_command(command: Command, console: Console) -> int:
    """Show the runs that a command is about, or all of an output root; 1 when some of them are not done."""
    if names_nothing(command):
        document = root_document(root_of(command.overrides))
        show, done = show_root, True
    else:
        say = partial(console.print, style="dim", markup=False, soft_wrap=True)
        document = status_document(select(command, say).runs)
        show, done = show_status, document["done"]
    if command.has("--json"):
        print_json(document)
    else:
        show(document, console)
    return 0 if done else 1


def show_status(document: Mapping[str, Any], console: Console) -> None:
    """Print the state of every run, with the end of the log of those that failed; what several have in common once."""
    runs = {run["label"]: run for run in document["runs"]}
    reasons = _by_reason({name: run["why"] or "" for name, run in runs.items()})
    shared = {name for why, names in reasons.items() if why and len(names) > 1 for name in names}
    table = Table(title="Runs", title_justify="left")
    for heading in ("run", "id", "status", "stages", "why"):
        table.add_column(heading, overflow="fold")
    for name, run in runs.items():
        status = Text(run["state"], STYLES.get(run["state"], "default"))
        made = sum(stage["there"] for stage in run["stages"].values())
        why = "see below" if name in shared else run["why"] or ""
        table.add_row(Text(name), run["id"] or "—", status, f"{made} of {len(run['stages'])}", Text(why))
    console.print(table)
    for why, names in reasons.items():
        if names[0] in shared:
            who = f"all {len(runs)} runs" if len(names) == len(runs) else ", ".join(names)
            console.print(f"{who}: {why}", markup=False, soft_wrap=True)
        if failure := runs[names[0]]["failure"]:
            _show_tail(names[0], Failure.from_json(failure), console)


def _by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for name, why in reasons.items():
        names[why].append(name)
    return names


def status_document(runs: Sequence[PreparedRun]) -> dict[str, Any]:
    """The content of `show_status` as plain data: the keys are described in docs/json.md."""
    documents: list[dict[str, Any]] = []
    for name, run in zip(labels(runs), runs, strict=True):
        root = OutputRoot.of(run.job.config)
        state, store, nodes = read_state(root, run), root.store, run.nodes.values()
        unknown = away(run.nodes) if state is NOT_STARTED else None
        document = {
            "id": None if unknown else run.run_id,
            "label": name,
            "state": "unknown" if unknown else state.shown,
            "made": is_made(run, root),
            "why": unknown or _reason_of(state) or None,
            "failure": state.failure.to_json() if state.failure else None,
            "stages": {node.name: {"key": node.key, "there": store.find(*node.place) is not None} for node in nodes},
            "directory": str(root.run(run.run_id)),
        }
        documents.append(document)
    return {"done": all(document["made"] for document in documents), "runs": documents}


def show_failures(states: Mapping[str, RunState], console: Console) -> None:
    """Print runs that are not done, those with one reason together, with the end of the log of one of them."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, state in states.items():
        alike[state.shown, _reason_of(state)].append(name)
    for (shown, why), names in alike.items():
        console.print(f"  {shown}: {', '.join(names)}{f': {why}' if why else ''}", markup=False, soft_wrap=True)
        _show_tail(names[0], states[names[0]].failure, console)


def _reason_of(state: RunState) -> str:
    if state.holder is not None:
        return f"by {describe(state.holder)}"
    if state.status == STOPPED:
        return "paribus run without until makes the rest"
    return state.failure.shown if state.failure is not None else ""


def _show_tail(name: str, failure: Failure | None, console: Console) -> None:
    """Print the end of the log, where the message alone does not explain the failure."""
    if failure is None or not failure.tail or failure.failure_class in EXPLAINED:
        return
    console.print(f"  the end of {failure.log} of {name}:", markup=False, soft_wrap=True)
    for line in failure.tail:
        console.print(f"    {line}", markup=False, style="dim", soft_wrap=True)


def show_root(document: Mapping[str, Any], console: Console) -> None:
    """Print sweeps and runs of an output root, the newest first, each run below the newest sweep that has it."""
    if not document["runs"] and not document["sweeps"]:
        text = f"nothing has run below {document['root']}; name the output root with root=..."
        console.print(text, markup=False, soft_wrap=True)
        return
    console.print(_root_table(document))
    reasons = _by_reason({run["id"][:SHORT]: f"{run['state']}: {run['why']}" for run in document["runs"] if run["why"]})
    for why, names in reasons.items():
        console.print(f"{', '.join(names)} {why}", markup=False, soft_wrap=True)


def root_document(root: OutputRoot) -> dict[str, Any]:
    """The sweeps and runs of an output root as plain data: the keys are described in docs/json.md."""
    inventory, sweeps = take_inventory(root), read_sweeps(root.path)
    of_run: dict[str, list[SweepRecord]] = {}
    for sweep in sweeps:
        for run in sweep.runs:
            of_run.setdefault(run.run_id, []).append(sweep)
    begun = [*inventory.runs, *(name for name in of_run if name not in inventory.runs)]
    return {
        "root": str(inventory.root.path),
        "sweeps": [_sweep_document(sweep, inventory) for sweep in sweeps],
        "runs": [_run_document(name, of_run.get(name, []), inventory) for name in begun],
    }


def sweep_state(runs: Sequence[str]) -> str:
    """State of a sweep: the common one of its runs; else running, failed or partly, in that order."""
    if len(set(runs)) == 1:
        return runs[0]
    if RUNNING in runs:
        return RUNNING
    return FAILED if FAILED in runs else "partly"


def _root_table(document: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", overflow="fold")
    for heading in ("id", "state", "bits/byte"):
        table.add_column(heading, no_wrap=True)
    table.add_column("scores", overflow="fold")
    table.add_column("age", justify="right", no_wrap=True)
    unlisted = {run["id"]: run for run in document["runs"]}
    for sweep in document["sweeps"]:
        several = len(sweep["runs"]) > 1
        if several:
            state = f"{sweep['state']} {sweep['done']}/{len(sweep['runs'])}"
            given = format_age(time.time() - sweep["given"])
            table.add_row(Text(sweep["name"]), sweep["id"][:SHORT], state, "", "", given, style="bold")
        for run in [unlisted.pop(run_id) for run_id in sweep["runs"] if run_id in unlisted]:
            _add_run(table, run, f"  {run['label']}" if several else run["name"])
    for run in unlisted.values():
        _add_run(table, run, run["name"])
    return table


def _add_run(table: Table, run: Mapping[str, Any], name: str) -> None:
    others = ", ".join(f"{measure} {value:.4g}" for measure, value in run["scores"].items() if measure != BITS)
    bits = f"{run['scores'][BITS]:.4f}" if BITS in run["scores"] else ""
    state, when = Text(run["state"], STYLES.get(run["state"], "default")), run["ended"] or run["started"]
    age = format_age(time.time() - when) if when else ""
    table.add_row(Text(name), run["id"][:SHORT], state, bits, Text(others), age)


def _sweep_document(sweep: SweepRecord, inventory: Inventory) -> dict[str, Any]:
    states = _states_of_sweep(sweep, inventory)
    return {
        "id": sweep.id,
        "name": sweep.name,
        "state": sweep_state(states),
        "given": sweep.given,
        "runs": [run.run_id for run in sweep.runs],
        "done": states.count(DONE),
    }


def _states_of_sweep(sweep: SweepRecord, inventory: Inventory) -> list[str]:
    return [
        inventory.runs[run.run_id].state if run.run_id in inventory.runs else NOT_STARTED.status for run in sweep.runs
    ]


def _run_document(run_id: str, sweeps: Sequence[SweepRecord], inventory: Inventory) -> dict[str, Any]:
    run = inventory.runs.get(run_id)
    swept = next((member for sweep in sweeps for member in sweep.runs if member.run_id == run_id), None)
    return {
        "id": run_id,
        "name": run.name if run else swept.name if swept else run_id,
        "label": swept.label if swept else None,
        "sweeps": [sweep.id for sweep in sweeps],
        "state": run.state if run else NOT_STARTED.status,
        "why": run.why or None if run else None,
        "started": run.record.get("started") if run else None,
        "ended": run.record.get("ended") if run else None,
        "scores": main_scores(inventory.scores(run_id)) if run else {},
    }


UNTIL = "until"


def is_made(run: PreparedRun, root: OutputRoot) -> bool:
    """True if all that a command asks of a run is made."""
    return is_done(run.run_id, run.nodes, root, run.job.config.until)


def stopped_early(runs: Sequence[PreparedRun], root: OutputRoot) -> list[PreparedRun]:
    """The runs that stopped at their `until` stage."""
    return [run for run in runs if read_state(root, run).status == STOPPED]


def show_unfinished(command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """Print the stages that stopped runs lack, and the command that makes them; nothing where none stopped."""
    root = OutputRoot.of(composition.jobs[0].config)
    if not (stopped := stopped_early(runs, root)):
        return
    nodes = [node for run in stopped for node in run.nodes.values()]
    stages = dict.fromkeys(node.name for node in nodes if root.store.find(*node.place) is None)
    given = typed_command(command, without=UNTIL, multirun=composition.multirun)
    message = (
        f"{len(stopped)} of {len(runs)} stopped early, without {', '.join(stages)}; the rest is made by\n  {given}"
    )
    console.print(message, markup=False, soft_wrap=True)


def typed_command(command: Command, *, without: str | None = None, multirun: bool, verb: str = "run") -> str:
    """`paribus run`, or another `verb`, of a command's overrides `without` those of one field."""
    overrides = [override for override in command.overrides if override.lstrip("+").partition("=")[0] != without]
    return Command(command.flags, tuple(overrides)).typed(verb, multirun=multirun)
