"""Plan as tables on the terminal, as a bill in words and as data for programs, and the refusal over its limit."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from paribus.config.units import format_count, format_hours, format_size
from paribus.errors import ConfigurationError, Problem
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.plan import Plan, PlannedRun, make_plan
from paribus.planning.speed import NEVER_PROBED, NOT_PROBED, Say
from paribus.reporting.data_tables import bare_table

STYLES = {"cached": "green", "failed": "red", "running": "yellow"}


def show_plan(plan: Plan, console: Console) -> None:
    """Print the unique stages, what each run costs, the bill, and at last what `paribus run` would refuse."""
    console.print(_stage_table(plan))
    _show_runs([run.label for run in plan.runs], [_run_figures(run) for run in plan.runs], console)
    for line in (*_remark_lines(plan), *bill(plan)):
        console.print(line, markup=False, soft_wrap=True)
    for line in _refusal_lines(plan):
        console.print(line, style="yellow", markup=False, soft_wrap=True)


def _remark_lines(plan: Plan) -> Iterator[str]:
    devices = {True: "a GPU (bf16 unless training.precision says fp32)", False: "a CPU (fp32 unless it says bf16)"}
    if kinds := sorted({run.gpu for run in plan.runs if run.memory is not None}):
        where = " or ".join(devices[gpu] for gpu in kinds)
        lowered = "; one that does not fit a GPU is lowered when training begins" if True in kinds else ""
        yield f"memory: of one training process on {where}, with training.micro_batch contexts at once{lowered}"
    if any(run.length.estimated for run in plan.runs):
        yield "~ estimated: exact once trained"
    for before in sorted({run.length.steps_before for run in plan.runs} - {0}):
        yield (
            f"the first {before:,} steps are those of the training that is gone on from: hours leave them out, and the "
            "bill has them where they are still to be trained"
        )
    yield from dict.fromkeys(f"bytes a token: {run.text_source}" for run in plan.runs if run.text_source)
    if any(run.full for run in plan.runs):
        yield "contexts that packing pads are taken to be full: a step reads less, and tokens or text take more steps"
    if any(run.length.epochs is not None and run.length.epochs > 1 for run in plan.runs):
        yield "more than 1 epoch: the text is repeated, which budget.max_epochs=1 would refuse"
    yield from plan.judgement


def _refusal_lines(plan: Plan) -> Iterator[str]:
    """Reasons that would keep `paribus run` from beginning, as it gives them."""
    yield from (f"paribus run could not begin: {problem}" for problem in plan.problems)
    for run in plan.runs:
        if run.refused:
            shown = f"{_mark(run, 'epochs')}{run.length.epochs:.3g} epochs, but budget.max_epochs is {run.max_epochs:g}"
            yield f"paribus run would refuse {run.label}: {shown}"
        if run.too_few:
            exactly = "would" if run.too_few_for_sure else "may"
            yield f"paribus run {exactly} refuse {run.label}: {run.too_few}"
    yield from (f"paribus run would refuse this: {refusal}" for refusal in plan.refusals)


def _stage_table(plan: Plan) -> Table:
    table = bare_table("Unique stages")
    table.add_column("stage")
    for heading in ("unique", "for runs"):
        table.add_column(heading, justify="right")
    table.add_column("state")
    states: dict[str, Counter[str]] = defaultdict(Counter)
    needed: Counter[str] = Counter()
    for stage in plan.stages:
        states[stage.name][stage.state] += 1
        needed[stage.name] += stage.runs
    for name, counted in states.items():
        shown = ", ".join(f"[{STYLES.get(state, 'default')}]{number} {state}[/]" for state, number in counted.items())
        table.add_row(name, str(counted.total()), str(needed[name]), shown)
    return table


def _show_runs(labels: Sequence[str], figures: Sequence[Mapping[str, str]], console: Console) -> None:
    """The runs with their figures, a row each. Where these are too wide, what all have in common is said in a line, and
    where the rest is too, even with names in several lines, half of a run's figures stand below the others.
    """
    headings = list(figures[0])
    whole = _run_table(labels, figures, [[name] for name in headings])
    if _table_width(whole, console).maximum <= console.width:
        console.print(whole)
        return
    own = [name for name in headings if len({each[name] for each in figures}) > 1]
    common = ", ".join(f"{name} {figures[0][name]}" for name in headings if name not in own)
    if common:
        who = "every run" if len(labels) > 1 else labels[0]
        console.print(f"{who}: {common}", markup=False, soft_wrap=True)
    if len(labels) > 1:
        half = (len(own) + 1) // 2
        table = _run_table(labels, figures, [[name] for name in own])
        stacked = _run_table(labels, figures, [own[at::half] for at in range(half)])
        console.print(table if _table_width(table, console).minimum <= console.width else stacked)


def _table_width(table: Table, console: Console) -> Measurement:
    return Measurement.get(console, console.options.update(max_width=10_000), table)


def _run_table(labels: Sequence[str], figures: Sequence[Mapping[str, str]], columns: Sequence[Sequence[str]]) -> Table:
    """A column for each group of figures, which stand below each other; only the names of runs give way."""
    table = bare_table("Runs")
    table.add_column("run", overflow="fold")
    for names in columns:
        longest = max(len(text) for name in names for text in (name, *(each[name] for each in figures)))
        table.add_column("\n".join(names), justify="right", no_wrap=True, min_width=longest)
    for label, each in zip(labels, figures, strict=True):
        table.add_row(Text(label), *("\n".join(each[name] for name in names) for names in columns))
    return table


def _run_figures(run: PlannedRun) -> dict[str, str]:
    length = run.length
    return {
        "tokens": _mark(run, "tokens") + format_count(length.tokens),
        "text": _mark(run, "text_bytes") + format_size(length.text_bytes),
        "steps": _mark(run, "steps") + f"{length.steps:,}",
        "epochs": "—" if length.epochs is None else _mark(run, "epochs") + f"{length.epochs:.3g}",
        "params": _mark(run, "parameters") + format_count(run.parameters),
        "FLOPs": _mark(run, "flops") + f"{length.flops:.3g}",
        "hours": "—" if run.hours is None else _mark(run, "device_hours") + format_hours(run.hours),
        "disk": _mark(run, "disk") + format_size(run.disk_bytes),
        "memory": "—" if run.memory is None else _mark(run, "memory") + format_size(run.memory),
    }


def _mark(run: PlannedRun, figure: str) -> str:
    return "~" if figure in run.length.estimated else ""


HOW_TO_PROBE = "plan.throughput=probe measures each model shape here, in about {seconds:.0f} s; for another device: "
HOW_TO_STATE = "plan.device=h800 plan.utilisation=0.4"
SECONDS_TO_IMPORT = 6


def bill(plan: Plan) -> Iterator[str]:
    """A line each: training and what its speed is taken from, wall time, room for encoded text, the limit."""
    if plan.until is not None:
        yield f"until={plan.until}: what follows that stage, or does not lead to it, is neither made nor counted"
    if plan.until is None or any(run.trains for run in (*plan.firsts, *plan.runs)):
        yield from _training_lines(plan)
    if plan.tokens_bytes:
        yield f"still to encode: ~{format_size(plan.tokens_bytes)} of tokens"
    if plan.config.max_device_hours is not None and plan.device_hours is not None:
        yield f"plan.max_device_hours: {format_hours(plan.device_hours)} of {plan.config.max_device_hours:g}"


def _training_lines(plan: Plan) -> Iterator[str]:
    trainings = plan.trainings
    if not trainings:
        yield "nothing is left to train"
        return
    hours = plan.device_hours
    known = "device-hours are not known" if hours is None else f"{format_hours(hours)} device-hours"
    noun = "training" if len(trainings) == 1 else "trainings"
    size = format_size(plan.disk_bytes)
    yield f"still to train: {len(trainings)} {noun}, {plan.flops:.3g} FLOPs, {known}; {size} of checkpoints"
    if hours is not None and plan.devices > 1:
        yield f"  {format_hours(hours / plan.devices)} hours on {plan.devices} devices that are never idle"
    for source in dict.fromkeys(run.throughput.source for run in trainings):
        yield f"  speed: {source}"
    sources = [run.throughput.source for run in trainings]
    if any(source.endswith(NOT_PROBED) for source in sources):
        yield f"  {HOW_TO_PROBE.format(seconds=plan.config.probe_seconds + SECONDS_TO_IMPORT)}{HOW_TO_STATE}"
    elif any(source.endswith(NEVER_PROBED) for source in sources):
        yield f"  a stated speed: {HOW_TO_STATE}"


_FIGURE_KEYS = {"disk": "disk_bytes", "memory": "memory_bytes"}
"""Names of figures that have another key here."""


def plan_document(plan: Plan, runs: Sequence[PreparedRun]) -> dict[str, Any]:
    """Everything that is shown of the plan of `runs`, in bytes, hours and whole numbers."""
    return {
        "stages": [asdict(stage) for stage in plan.stages],
        "runs": [_run_document(planned, run) for planned, run in zip(plan.runs, runs, strict=True)],
        "until": plan.until,
        "left": {
            "trainings": len(plan.trainings),
            "flops": plan.flops,
            "device_hours": plan.device_hours,
            "wall_hours": None if plan.device_hours is None else plan.device_hours / plan.devices,
            "checkpoint_bytes": plan.disk_bytes,
        },
        "devices": plan.devices,
        "bill": list(bill(plan)),
        "judgement": list(plan.judgement),
        "problems": list(plan.problems),
        "refusals": [str(error) for error in plan.refusals],
    }


def _run_document(planned: PlannedRun, run: PreparedRun) -> dict[str, Any]:
    length = planned.length
    return {
        "id": run.run_id,
        "label": planned.label,
        "training": {"key": planned.training.key, "state": planned.training.state},
        "tokens": length.tokens,
        "text_bytes": length.text_bytes,
        "steps": length.steps,
        "epochs": length.epochs,
        "parameters": planned.parameters,
        "flops": length.flops,
        "device_hours": planned.hours,
        "disk_bytes": planned.disk_bytes,
        "memory_bytes": planned.memory,
        "estimated": sorted(_FIGURE_KEYS.get(name, name) for name in length.estimated),
        "refused": planned.refused,
        "too_few": planned.too_few,
    }


LIMIT = "plan.max_device_hours"


def refuse_over_limit(runs: Sequence[PreparedRun], say: Say) -> None:
    """ConfigurationError where the runs of a command may not take as long as they would; nothing without a limit."""
    if runs[0].job.config.plan.max_device_hours is not None:
        check_limit(make_plan(runs, say))


def check_limit(plan: Plan) -> None:
    """ConfigurationError, naming figure and limit, for a plan over its limit and for one that cannot be judged."""
    limit = plan.config.max_device_hours
    if limit is None:
        return
    hours = plan.device_hours
    if hours is None:
        sources = dict.fromkeys(run.throughput.source for run in plan.trainings if run.hours is None)
        why = f"{'; '.join(sources)}; state the speed with {HOW_TO_STATE}, or leave the limit out"
        raise ConfigurationError(Problem(LIMIT, f"{limit:g} cannot be judged: {why}"))
    if hours > limit:
        number = len(plan.trainings)
        trainings = "training takes" if number == 1 else "trainings take"
        what = f"{limit:g}, but {number} {trainings} {format_hours(hours)} device-hours"
        raise ConfigurationError(Problem(LIMIT, f"{what}; run less, or raise the limit"))
