"""How the runs of a command stand, and why those that failed did."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paribus.commands.rest import is_made
from paribus.pipeline.graph import away
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.run_names import labels
from paribus.pipeline.record.run_state import LOST, NOT_STARTED, STOPPED, RunState, read_state
from paribus.store.claim import describe

STYLES = {"done": "green", "failed": "red", LOST: "red", "interrupted": "red", "running": "yellow"}

EXPLAINED = ("configuration", "data", "interrupted")
"""Classes of failures whose message says what to change."""


def show_status(runs: Sequence[PreparedRun], console: Console) -> int:
    """Print the state of every run, with the end of the log of those that failed; what several have in common once.

    0 when all are done, or all of them that `until` takes, else 1.
    """
    named = list(zip(labels(runs), runs, strict=True))
    states = {name: read_state(OutputRoot.of(run.job.config), run) for name, run in named}
    unknown = {name: away(run.nodes) if states[name] is NOT_STARTED else None for name, run in named}
    reasons = _alike({name: unknown[name] or _why(state) for name, state in states.items()})
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


def _alike(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Each reason with the names that have it, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, why in reasons.items():
        found[why].append(name)
    return found


def status_document(runs: Sequence[PreparedRun]) -> dict[str, Any]:
    """What `show_status` prints as plain data: the keys are described in docs/json.md."""
    found = [_status(name, run) for name, run in zip(labels(runs), runs, strict=True)]
    return {"done": all(one["made"] for one in found), "runs": found}


def _status(name: str, run: PreparedRun) -> dict[str, Any]:
    root = OutputRoot.of(run.job.config)
    state = read_state(root, run)
    unknown = away(run.nodes) if state is NOT_STARTED else None
    stages = {
        node.name: {"key": node.key, "there": root.store.find(*node.place) is not None} for node in run.nodes.values()
    }
    return {
        "id": None if unknown else run.run_id,
        "label": name,
        "state": "unknown" if unknown else state.shown,
        "made": is_made(run, root),
        "why": unknown or _why(state) or None,
        "failure": state.failure.to_json() if state.failure else None,
        "stages": stages,
        "directory": str(root.run(run.run_id)),
    }


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
