"""The verb `paribus list`: the sweeps and runs of an output root, the newest first."""

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.commands.json_output import JSON, print_json
from paribus.config.flags import HELP_FLAGS
from paribus.config.options import read_options
from paribus.evaluation.measures.main_scores import BITS, main_scores
from paribus.pipeline.output_root import OutputRoot, named_root
from paribus.pipeline.record.inventory import DONE, FAILED, INCOMPLETE, NOT_STARTED, RUNNING, Inventory, take_inventory
from paribus.pipeline.record.sweep_record import SweepRecord, read_sweeps
from paribus.pipeline.show.display import age

HELP = """usage: paribus list [root=paribus_runs] [--json]

The sweeps and runs of an output root, the newest first: state, scores of the last checkpoint, and age. A run is listed
below the newest sweep that has it; one that was given alone has a line of its own. Other verbs take the identifiers.

  paribus list
  paribus list root=my/runs
  paribus list --json | jq '.runs[] | select(.state == "failed") | .id'

exit status: 0; 2 refused
"""
SHORT = 8
"""Characters of an identifier, enough for the verbs that take one."""
STYLES = {DONE: "green", FAILED: "red", "interrupted": "red", INCOMPLETE: "red", RUNNING: "yellow"}


def list_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus list [root=...] [--json]`; ConfigurationError for anything else."""
    if HELP_FLAGS & set(arguments):
        console.print(HELP, end="", markup=False, highlight=False, soft_wrap=True)
        return 0
    root = parse(arguments)
    inventory, sweeps = take_inventory(root), read_sweeps(root.path)
    if JSON in arguments:
        print_json(_document(inventory, sweeps))
        return 0
    if inventory.runs or sweeps:
        console.print(_table(inventory, sweeps))
    else:
        told = f"nothing has run below {root.path}; name the output root with root=..."
        console.print(told, markup=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str]) -> OutputRoot:
    """The output root that is listed; ConfigurationError for unknown arguments."""
    options = read_options([argument for argument in arguments if argument != JSON], ("root",))
    return named_root(options.get("root"))


def sweep_state(states: Sequence[str]) -> str:
    """How a sweep stands: as all of its runs do, else the worst that is to be known of it."""
    if len(set(states)) == 1:
        return states[0]
    if RUNNING in states:
        return RUNNING
    return FAILED if FAILED in states else "partly"


def _states(sweep: SweepRecord, inventory: Inventory) -> list[str]:
    return [inventory.runs[run.run_id].state if run.run_id in inventory.runs else NOT_STARTED for run in sweep.runs]


def _table(inventory: Inventory, sweeps: Sequence[SweepRecord]) -> Table:
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
            states = _states(sweep, inventory)
            state = f"{sweep_state(states)} {states.count(DONE)}/{len(states)}"
            given = age(time.time() - sweep.given)
            table.add_row(Text(sweep.name), sweep.id[:SHORT], state, "", "", given, style="bold")
        for run in new:
            _add_run(table, run.run_id, f"  {run.label}" if several else run.name, inventory)
    for kept in inventory.runs.values():
        if kept.run_id not in listed:
            _add_run(table, kept.run_id, kept.name, inventory)
    return table


def _add_run(table: Table, run_id: str, name: str, inventory: Inventory) -> None:
    run = inventory.runs.get(run_id)
    if run is None:
        table.add_row(Text(name), run_id[:SHORT], NOT_STARTED)
        return
    scores = main_scores(inventory.scores(run_id))
    bits = f"{scores.pop(BITS):.4f}" if BITS in scores else ""
    others = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
    when = run.ended or run.started
    state = Text(run.state, STYLES.get(run.state, "default"))
    table.add_row(Text(name), run_id[:SHORT], state, bits, Text(others), age(time.time() - when) if when else "")


def _document(inventory: Inventory, sweeps: Sequence[SweepRecord]) -> dict[str, Any]:
    of_run: dict[str, list[SweepRecord]] = {}
    for sweep in sweeps:
        for run in sweep.runs:
            of_run.setdefault(run.run_id, []).append(sweep)
    begun = [*inventory.runs, *(name for name in of_run if name not in inventory.runs)]
    return {
        "root": str(inventory.root.path),
        "sweeps": [_sweep_object(sweep, inventory) for sweep in sweeps],
        "runs": [_run_object(name, of_run.get(name, []), inventory) for name in begun],
    }


def _sweep_object(sweep: SweepRecord, inventory: Inventory) -> dict[str, Any]:
    states = _states(sweep, inventory)
    return {
        "id": sweep.id,
        "name": sweep.name,
        "state": sweep_state(states),
        "given": sweep.given,
        "runs": [run.run_id for run in sweep.runs],
        "done": states.count(DONE),
    }


def _run_object(run_id: str, sweeps: Sequence[SweepRecord], inventory: Inventory) -> dict[str, Any]:
    run = inventory.runs.get(run_id)
    swept = next((one for sweep in sweeps for one in sweep.runs if one.run_id == run_id), None)
    return {
        "id": run_id,
        "name": run.name if run else swept.name if swept else run_id,
        "label": swept.label if swept else None,
        "sweeps": [sweep.id for sweep in sweeps],
        "state": run.state if run else NOT_STARTED,
        "why": run.why or None if run else None,
        "started": run.started if run else None,
        "ended": run.ended if run else None,
        "scores": main_scores(inventory.scores(run_id)) if run else {},
    }
