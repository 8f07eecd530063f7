"""The verb `paribus status`: how the runs of a command or all runs of an output root stand, and why some failed."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.commands.output import print_json
from paribus.commands.selection import names_nothing, root_of, select
from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.config.metrics import BITS, main_scores
from paribus.config.units import format_age
from paribus.pipeline.graph import away
from paribus.pipeline.prepared import PreparedRun, labels
from paribus.pipeline.recorder import LOST, NOT_STARTED, STOPPED, RunState, is_done, read_state
from paribus.pipeline.records import SweepRecord, read_sweeps
from paribus.pipeline.root import DONE, FAILED, INCOMPLETE, RUNNING, Inventory, OutputRoot, take_inventory
from paribus.store.claims import describe

SHORT = 8
"""Characters of an identifier, enough for the verbs that take one."""
STYLES = {DONE: "green", FAILED: "red", LOST: "red", "interrupted": "red", INCOMPLETE: "red", RUNNING: "yellow"}

EXPLAINED = ("configuration", "data", "interrupted")
"""Classes of failures whose message says what to change."""


def status_command(command: Command, console: Console) -> int:
    """Show the runs that a command is about, or all of an output root; 1 when some of them are not done."""
    if names_nothing(command):
        root = root_of(command.overrides)
        if command.asks_json:
            print_json(root_document(root))
        else:
            show_root(root, console)
        return 0
    runs = select(command, partial(console.print, style="dim", markup=False, soft_wrap=True)).runs
    if not command.asks_json:
        return show_status(runs, console)
    document = status_document(runs)
    print_json(document)
    return 0 if document["done"] else 1


def show_status(runs: Sequence[PreparedRun], console: Console) -> int:
    """Print the state of every run, with the end of the log of those that failed; what several have in common once.

    0 when all are done, or all of them that `until` takes, else 1.
    """
    named = list(zip(labels(runs), runs, strict=True))
    states = {name: read_state(OutputRoot.of(run.job.config), run) for name, run in named}
    unknown = {name: away(run.nodes) if states[name] is NOT_STARTED else None for name, run in named}
    reasons = _by_reason({name: unknown[name] or _why(state) for name, state in states.items()})
    shared = {name for why, names in reasons.items() if why and len(names) > 1 for name in names}
    table, left = Table(title="Runs", title_justify="left"), False
    for heading in ("run", "id", "status", "stages", "why"):
        table.add_column(heading, overflow="fold")
    for name, run in named:
        root, state = OutputRoot.of(run.job.config), states[name]
        made = sum(root.store.find(*node.place) is not None for node in run.nodes.values())
        left |= not is_made(run, root)
        identifier, shown = ("—", "unknown") if unknown[name] else (run.run_id, state.shown)
        status = Text(shown, STYLES.get(state.status, "default"))
        why = "see below" if name in shared else unknown[name] or _why(state)
        table.add_row(Text(name), identifier, status, f"{made} of {len(run.nodes)}", Text(why))
    console.print(table)
    for why, names in reasons.items():
        if names[0] in shared:
            who = f"all {len(named)} runs" if len(names) == len(named) else ", ".join(names)
            console.print(f"{who}: {why}", markup=False, soft_wrap=True)
        _show_tail(names[0], states[names[0]], console)
    return 1 if left else 0


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
            "why": unknown or _why(state) or None,
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
        alike[state.shown, _why(state)].append(name)
    for (shown, why), names in alike.items():
        console.print(f"  {shown}: {', '.join(names)}{f': {why}' if why else ''}", markup=False, soft_wrap=True)
        _show_tail(names[0], states[names[0]], console)


def _why(state: RunState) -> str:
    if state.holder is not None:
        return f"by {describe(state.holder)}"
    if state.status == STOPPED:
        return "paribus run without until makes the rest"
    return state.failure.shown if state.failure is not None else ""


def _show_tail(name: str, state: RunState, console: Console) -> None:
    """The end of the log, where the message alone does not explain the failure."""
    if state.failure is None or not state.failure.tail or state.failure.failure_class in EXPLAINED:
        return
    console.print(f"  the end of {state.failure.log} of {name}:", markup=False, soft_wrap=True)
    for line in state.failure.tail:
        console.print(f"    {line}", markup=False, style="dim", soft_wrap=True)


def show_root(root: OutputRoot, console: Console) -> None:
    """Print the sweeps and runs of an output root, the newest first, and why some failed.

    A run is listed below the newest sweep that has it; one of no sweep has a line of its own.
    """
    inventory, sweeps = take_inventory(root), read_sweeps(root.path)
    if not inventory.runs and not sweeps:
        text = f"nothing has run below {root.path}; name the output root with root=..."
        console.print(text, markup=False, soft_wrap=True)
        return
    console.print(_root_table(inventory, sweeps))
    reasons = _by_reason({run.run_id[:SHORT]: f"{run.state}: {run.why}" for run in inventory.runs.values() if run.why})
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
    """State of a sweep from the states of its runs: that of all of them, else the worst."""
    if len(set(runs)) == 1:
        return runs[0]
    if RUNNING in runs:
        return RUNNING
    return FAILED if FAILED in runs else "partly"


def _root_table(inventory: Inventory, sweeps: Sequence[SweepRecord]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", overflow="fold")
    for heading in ("id", "state", "bits/byte"):
        table.add_column(heading, no_wrap=True)
    table.add_column("scores", overflow="fold")
    table.add_column("age", justify="right", no_wrap=True)
    listed: set[str] = set()
    for sweep in sweeps:
        new = [run for run in sweep.runs if run.run_id not in listed]
        listed |= {run.run_id for run in new}
        several = len(sweep.runs) > 1
        if several:
            states = _states_of_sweep(sweep, inventory)
            state = f"{sweep_state(states)} {states.count(DONE)}/{len(states)}"
            given = format_age(time.time() - sweep.given)
            table.add_row(Text(sweep.name), sweep.id[:SHORT], state, "", "", given, style="bold")
        for run in new:
            _add_run(table, run.run_id, f"  {run.label}" if several else run.name, inventory)
    for recorded in inventory.runs.values():
        if recorded.run_id not in listed:
            _add_run(table, recorded.run_id, recorded.name, inventory)
    return table


def _add_run(table: Table, run_id: str, name: str, inventory: Inventory) -> None:
    run = inventory.runs.get(run_id)
    if run is None:
        table.add_row(Text(name), run_id[:SHORT], NOT_STARTED.status)
        return
    scores = main_scores(inventory.scores(run_id))
    bits = f"{scores.pop(BITS):.4f}" if BITS in scores else ""
    others = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
    when = run.record.get("ended") or run.record.get("started")
    state = Text(run.state, STYLES.get(run.state, "default"))
    table.add_row(Text(name), run_id[:SHORT], state, bits, Text(others), format_age(time.time() - when) if when else "")


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
    """True if nothing of what a command wants of a run is left to be made."""
    return is_done(run.run_id, run.nodes, root, run.job.config.until)


def stopped_early(runs: Sequence[PreparedRun], root: OutputRoot) -> list[PreparedRun]:
    """The runs that ended after the stage that they were to end after."""
    return [run for run in runs if read_state(root, run).status == STOPPED]


def show_unfinished(command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console) -> None:
    """Say what is left of runs that stopped, and the command that makes it; nothing where none did."""
    root = OutputRoot.of(composition.jobs[0].config)
    if not (left := stopped_early(runs, root)):
        return
    nodes = [node for run in left for node in run.nodes.values()]
    stages = dict.fromkeys(node.name for node in nodes if root.store.find(*node.place) is None)
    given = typed_command(command, without=UNTIL, multirun=composition.multirun)
    message = f"{len(left)} of {len(runs)} stopped early, without {', '.join(stages)}; the rest is made by\n  {given}"
    console.print(message, markup=False, soft_wrap=True)


def typed_command(command: Command, *, without: str | None = None, multirun: bool, verb: str = "run") -> str:
    """`paribus run`, or another `verb`, of a command's overrides `without` those of one field."""
    overrides = [override for override in command.overrides if override.lstrip("+").partition("=")[0] != without]
    return Command(command.flags, tuple(overrides)).typed(verb, multirun=multirun)
