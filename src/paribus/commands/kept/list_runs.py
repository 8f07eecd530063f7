"""The verb `paribus list`: the sweeps and runs of an output root, the newest first."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from paribus.commands.json_output import JSON, print_json
from paribus.commands.kept.listing import Line, listing
from paribus.config.flags import HELP_FLAGS
from paribus.config.options import read_options
from paribus.config.units import format_size
from paribus.evaluation.measures.main_scores import BITS, main_scores
from paribus.pipeline.output_root import OutputRoot, named_root
from paribus.pipeline.record.inventory import DONE, FAILED, NOT_STARTED, RUNNING, Inventory, take_inventory
from paribus.pipeline.record.sweep_record import SweepRecord, read_sweeps
from paribus.pipeline.show.display import age

HELP = """usage: paribus list [root=paribus_runs] [--json]

The sweeps and runs of an output root, the newest first: state, scores of the last checkpoint, age, and the size of the
artefacts that nothing else uses (own) and that other runs use too (shared). A run is listed below the newest sweep that
has it; one that was given alone has a line of its own. Sweep, arm and run names are what other verbs take.

  paribus list
  paribus list root=my/runs
  paribus list --json | jq '.runs[] | select(.state == "failed") | .id'

exit status: 0; 2 refused
"""


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
    lines = list(_lines(inventory, sweeps))
    if not lines:
        console.print(
            f"nothing has run below {root.path}; name the output root with root=...", markup=False, soft_wrap=True
        )
        return 0
    console.print(listing(lines, console), end="", soft_wrap=True)
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


def _lines(inventory: Inventory, sweeps: Sequence[SweepRecord]) -> Iterator[Line]:
    listed: set[str] = set()
    for sweep in sweeps:
        new = [run for run in sweep.runs if run.run_id not in listed]
        listed |= {run.run_id for run in new}
        if len(sweep.runs) > 1:
            yield _sweep_line(sweep, inventory)
            yield from (_run_line(run.run_id, run.label, inventory, within=True) for run in new)
        else:
            yield from (_run_line(run.run_id, run.name, inventory, within=False) for run in new)
    others = (run for run in inventory.runs.values() if run.run_id not in listed)
    yield from (_run_line(run.run_id, run.name, inventory, within=False) for run in others)


def _sweep_line(sweep: SweepRecord, inventory: Inventory) -> Line:
    states = _states(sweep, inventory)
    state, done = sweep_state(states), states.count(DONE)
    own, shared = inventory.sizes(run.run_id for run in sweep.runs)
    cells = {
        "name": sweep.name,
        "id": sweep.id,
        "state": f"{state} {done}/{len(states)}",
        "age": age(time.time() - sweep.given),
        "own": format_size(own),
        "shared": format_size(shared),
    }
    return Line("sweep", cells, state, within=False)


def _run_line(run_id: str, name: str, inventory: Inventory, *, within: bool) -> Line:
    run = inventory.runs.get(run_id)
    if run is None:
        return Line("run", {"name": name, "id": run_id, "state": NOT_STARTED}, NOT_STARTED, within)
    scores = main_scores(inventory.scores(run_id))
    own, shared = inventory.sizes([run_id])
    when = run.ended or run.started
    cells = {
        "name": name,
        "id": run_id,
        "state": run.state,
        "bits/byte": f"{scores[BITS]:.4f}" if BITS in scores else "",
        "scores": ", ".join(f"{name} {value:.4g}" for name, value in scores.items() if name != BITS),
        "age": age(time.time() - when) if when else "",
        "own": format_size(own),
        "shared": format_size(shared),
    }
    return Line("run", cells, run.state, within)


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
    own, shared = inventory.sizes(run.run_id for run in sweep.runs)
    return {
        "id": sweep.id,
        "name": sweep.name,
        "state": sweep_state(states),
        "given": sweep.given,
        "runs": [run.run_id for run in sweep.runs],
        "done": states.count(DONE),
        "own_bytes": own,
        "shared_bytes": shared,
    }


def _run_object(run_id: str, sweeps: Sequence[SweepRecord], inventory: Inventory) -> dict[str, Any]:
    run = inventory.runs.get(run_id)
    own, shared = inventory.sizes([run_id])
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
        "own_bytes": own,
        "shared_bytes": shared,
    }
