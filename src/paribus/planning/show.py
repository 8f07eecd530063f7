"""A plan on the terminal."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from paribus.config.units import format_count, format_hours, format_size
from paribus.planning.bill import bill
from paribus.planning.plan import Plan, PlannedRun
from paribus.reporting.formats.bare_table import bare_table

STYLES = {"cached": "green", "failed": "red", "running": "yellow"}


def show_plan(plan: Plan, console: Console) -> None:
    """Print the unique stages, what each run costs, the bill, and at last what `paribus run` would refuse."""
    console.print(_stage_table(plan))
    _show_runs([run.label for run in plan.runs], [_figures(run) for run in plan.runs], console)
    for line in (*_remarks(plan), *bill(plan)):
        console.print(line, markup=False, soft_wrap=True)
    for line in _refusals(plan):
        console.print(line, style="yellow", markup=False, soft_wrap=True)


def _remarks(plan: Plan) -> Iterator[str]:
    """How to read the figures of the runs."""
    padded = [run for run in plan.runs if run.padded and "tokens" in run.length.estimated]
    yield from _memory_remarks(plan)
    if any(run.length.estimated for run in plan.runs):
        yield "~ estimated: exact once trained"
    if any("parameters" in run.length.estimated for run in plan.runs):
        yield "a vocabulary that is not there yet is taken to have as many tokens as it is asked to; it may have fewer"
    for before in sorted({run.length.steps_before for run in plan.runs} - {0}):
        yield (
            f"the first {before:,} steps are those of the training that is gone on from: hours leave them out, and the "
            "bill has them where they are still to be trained"
        )
    for source in dict.fromkeys(run.text_source for run in plan.runs if run.text_source):
        yield f"bytes a token: {source}"
    if any(run.steps_at_least for run in padded):
        yield "contexts of packing=best_fit and one_document are padded: steps and FLOPs are at least these"
    if any(not run.steps_at_least for run in padded):
        yield "contexts of packing=best_fit and one_document are padded: tokens and text are at most these"
    pairs = [run for run in plan.runs if run.pairs and run.length.estimated]
    if any(not run.full_pairs for run in pairs):
        yield "pairs are taken to be as long as those of the corpus are in the mean, each side cut at the context"
    if any(run.full_pairs for run in pairs):
        yield "rows of packing=pair are taken to be full, source and target: a step reads and costs at most this"
    if any(run.length.epochs is not None and run.length.epochs > 1 for run in plan.runs):
        yield "more than 1 epoch: the text is repeated, which budget.max_epochs=1 would refuse"
    yield from plan.judgement


def _refusals(plan: Plan) -> Iterator[str]:
    """What would keep `paribus run` from beginning, the reasons as it gives them."""
    for problem in plan.problems:
        yield f"paribus run could not begin: {problem}"
    for run in plan.runs:
        if run.refused:
            shown = f"{_mark(run, 'epochs')}{run.length.epochs:.3g} epochs, but budget.max_epochs is {run.max_epochs:g}"
            yield f"paribus run would refuse {run.label}: {shown}"
        if run.too_few:
            exactly = "would" if run.too_few_for_sure else "may"
            yield f"paribus run {exactly} refuse {run.label}: {run.too_few}"
    for refusal in plan.refusals:
        yield f"paribus run would refuse this: {refusal}"


def _memory_remarks(plan: Plan) -> Iterator[str]:
    """What the column of memory is about."""
    shown = sorted({run.gpu for run in plan.runs if run.memory is not None})
    devices = {True: "a GPU (bf16 unless training.precision says fp32)", False: "a CPU (fp32 unless it says bf16)"}
    if shown:
        where = " or ".join(devices[gpu] for gpu in shown)
        lowered = "; one that does not fit a GPU is lowered when training begins" if True in shown else ""
        yield f"memory: of one training process on {where}, with training.micro_batch contexts at once{lowered}"


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
    if _width(whole, console).maximum <= console.width:
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
        console.print(table if _width(table, console).minimum <= console.width else stacked)


def _width(table: Table, console: Console) -> Measurement:
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


def _figures(run: PlannedRun) -> dict[str, str]:
    length = run.length
    return {
        "tokens": _mark(run, "tokens") + format_count(length.tokens),
        "text": _mark(run, "text_bytes") + format_size(length.text_bytes),
        "steps": _mark(run, "steps") + f"{length.steps:,}",
        "epochs": "—" if length.epochs is None else _mark(run, "epochs") + f"{length.epochs:.3g}",
        "params": _mark(run, "parameters") + format_count(run.parameters),
        "FLOPs": _mark(run, "flops") + f"{length.flops:.3g}",
        "hours": "—" if run.hours is None else _mark(run, "device_hours") + format_hours(run.hours.value),
        "disk": _mark(run, "disk") + format_size(run.disk_bytes),
        "memory": "—" if run.memory is None else _mark(run, "memory") + format_size(run.memory),
    }


def _mark(run: PlannedRun, figure: str) -> str:
    return "~" if figure in run.length.estimated else ""
