"""The verb `paribus items`: what each arm answered, item by item, and where two of them part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.commands.chosen import choose
from paribus.commands.items.asked import BETTER, FILE, TASK, Asked
from paribus.commands.json_output import print_json
from paribus.config.arguments import Command
from paribus.config.groups.experiment import table_of
from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import refuse_idle_factors
from paribus.pipeline.record.records import collect
from paribus.pipeline.record.references import plain_name
from paribus.store import atomic

if TYPE_CHECKING:
    from paribus.pipeline.item_texts import StoredTexts
    from paribus.reporting.items.scored import Scored
    from paribus.reporting.items.view import ItemsView
    from paribus.reporting.table.comparison import Comparison
    from paribus.reporting.table.frame import MissingRun
    from paribus.reporting.table.scores import RunScores

EXIT_INCOMPLETE = 1
Say = Callable[[str], None]


@dataclass(frozen=True)
class _Found:
    """What is looked at."""

    comparison: "Comparison"
    """The table of the runs, its scores those of the checkpoint that is asked for."""
    scores: Mapping[str, "RunScores"]
    """By run id, with the items that the table leaves out."""
    asked: Sequence["Scored"]
    texts: "StoredTexts"
    missing: Sequence["MissingRun"]


def items_command(command: Command, console: Console) -> int:
    """Show or write the items of the runs that are named or composed; 1 where one of these is not done.

    ConfigurationError for what is not there, with what is; FairnessError where the table would be refused.
    """
    asked = Asked.by(command)
    found = _find(command, asked, partial(console.print, style="dim", markup=False, soft_wrap=True))
    if asked.file is not None:
        _write(found, asked.file, partial(console.print, markup=False, soft_wrap=True))
    if command.asks_json:
        from paribus.reporting.items.plain import items_document

        print_json(items_document(found.comparison, _look(found, asked), found.missing))
    elif asked.file is None:
        _show(found, _look(found, asked), console)
    lost = any(row.missing for row in found.comparison.rows)
    return EXIT_INCOMPLETE if found.missing or lost else 0


def _find(command: Command, asked: Asked, say: Say) -> _Found:
    from paribus.pipeline.item_texts import StoredTexts
    from paribus.reporting.items.scored import all_scored, asked_for, at_checkpoint, with_left_out
    from paribus.reporting.table.comparison import compare

    chosen = choose(command, say)
    composition, runs = chosen.composition, chosen.runs
    refuse_idle_factors(runs)
    config = composition.jobs[0].config
    root = OutputRoot.of(config)
    records, missing = collect(runs, composition.factors, root)
    comparison = compare(records, composition.factors, missing, table_of(config.experiment))
    scores = with_left_out(comparison, records)
    if asked.checkpoint is not None:
        scores = at_checkpoint(scores, asked.checkpoint)
        comparison = replace(comparison, scores=at_checkpoint(comparison.scores, asked.checkpoint))
    return _Found(
        comparison, scores, asked_for(all_scored(comparison), asked.task, asked.shots), StoredTexts(runs, root), missing
    )


def _look(found: _Found, asked: Asked) -> "ItemsView":
    """Each task in numbers, and of the one that is named the items."""
    from paribus.reporting.items.view import items_view, overview_view

    if asked.task is None:
        return overview_view(found.comparison, found.asked, found.texts.gone)
    (scored,) = found.asked
    return items_view(
        found.comparison,
        scored,
        found.scores,
        found.texts.of(scored.name),
        limit=asked.limit,
        better=None if asked.better is None else _row(asked.better, found.comparison),
        gone=found.texts.gone,
    )


def _row(labels: str, comparison: "Comparison") -> int:
    """The row of these labels, or of which they begin the name; ConfigurationError for none and for several."""
    names = [plain_name(comparison.row_name(row)) for row in comparison.rows]
    asked = plain_name(labels)
    found = [place for place, name in enumerate(names) if name == asked]
    found = found or [place for place, name in enumerate(names) if name.startswith(asked)]
    if len(found) != 1:
        why = "may be several rows" if found else "is no row"
        raise ConfigurationError(f"{BETTER} {labels!r} {why}; there are {', '.join(map(repr, names))}")
    return found[0]


def _write(found: _Found, path: Path, say: Say) -> None:
    """Replace the file by all items of what is looked at."""
    from paribus.reporting.items.tidy import WRITERS, items_table

    table = items_table(found.comparison, found.asked, found.scores, found.texts.of)
    atomic.write_bytes(path, WRITERS[path.suffix](table))
    say(f"{path}: {table.num_rows:,} lines of {', '.join(scored.name for scored in found.asked)}")
    for line in found.texts.gone:
        say(line)


def _show(found: _Found, view: "ItemsView", console: Console) -> None:
    from paribus.reporting.items.terminal import item_blocks, overview_tables

    say = partial(console.print, markup=False)
    if view.heading:
        say(view.heading, style="bold")
    for line in view.notes:
        say(line, style="dim")
    for warning in view.warnings:
        say(warning, style="yellow", soft_wrap=True)
    for table in overview_tables(view.overviews, found.comparison):
        console.print()
        console.print(table)
    console.print()
    if view.scored is not None:
        for block in item_blocks(view.scored, view.items, found.comparison, console):
            console.print(block, soft_wrap=True)
    else:
        say(f"paribus items {TASK} NAME lists the items of one; {FILE} items.parquet writes all of all", style="dim")
    for row in found.comparison.rows:
        for reason in row.missing:
            say(f"left out, {found.comparison.row_name(row)}: {reason}", style="yellow", soft_wrap=True)
