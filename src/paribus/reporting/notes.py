"""Notes of a table: what ± means, what was tested on what, what is missing, and what makes rows unlike."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paribus.config.units import format_size
from paribus.reporting.columns import Cell, texts_cut_alike, unequal
from paribus.reporting.compare import Arm, Comparison, common_text_notes
from paribus.reporting.measures import (
    AVERAGE,
    BATCH_BYTES,
    CONCATENATED,
    CONTEXT_BYTES,
    HELDOUT_SETS,
    ITEMS_TO_JUDGE,
    SEEDS_TO_JUDGE,
    STEPS,
    Measure,
)
from paribus.reporting.prompts import crossed, some, truncated
from paribus.reporting.significance.judgement import too_few_items, unjudged
from paribus.reporting.table import EXPLORATORY, heading, size, spread_shows


@dataclass(frozen=True)
class Notes:
    """Sentences for beside a table."""

    warnings: tuple[str, ...]
    """What has to be read with every number."""
    legend: tuple[str, ...]
    """What numbers and marks mean, and what is missing."""
    details: tuple[str, ...]
    """How it was tested, what was equal, and what else a careful reader asks for."""

    @property
    def lines(self) -> list[str]:
        """All of them, in the order in which a reader needs them."""
        return [*self.warnings, *self.legend, *self.details]


def notes(comparison: Comparison) -> Notes:
    """All that is to be said of a table beside its numbers."""
    tests = _tests(comparison)
    marks = [line for line in tests if line == tests[0] or line.startswith(EXPLORATORY)]
    return Notes(
        warnings=tuple(training_warnings(comparison)),
        legend=(
            *_reading(comparison),
            *_spread(comparison),
            *marks,
            *(_few_seeds(comparison) if any(cell.test for _, _, cell in _finished_cells(comparison)) else []),
            *_few_items(comparison),
            *_repeated(comparison),
            *_redrawn(comparison),
            *some([line for row in comparison.rows for line in _gaps(row, comparison)]),
        ),
        details=(
            *(line for line in tests if line not in marks),
            *_detectable(comparison),
            *_plain(comparison),
            *(["In brackets: the paper's number, and ours minus it."] if comparison.table.paper else []),
            *truncated(comparison),
            *crossed(comparison),
            *_overlap(comparison),
            *other_sizes(comparison),
            *other_vocabularies(comparison),
            *comparison.proof.sentences(),
            *common_text_notes(comparison.common_text),
        ),
    )


def _reading(comparison: Comparison) -> list[str]:
    parts, counts, seen = [], [], set()
    for column in comparison.columns:
        items = max((row.cells[column.key].items for row in comparison.finished), default=0)
        if len(column.parts) == 1 and items and column.parts[0].task not in seen:
            seen.add(column.parts[0].task)
            counts.append(f"{items:,} items of {comparison.name(column.parts[0].task)}")
        elif column.kind == "bits_per_byte" and items:
            counts.append(f"{items:,} {_documents(column)}")
    shares = dict.fromkeys(
        family for column in comparison.columns if column.kind == "accuracy" for family in column.families
    )
    if shares:
        named = ", ".join(shares)
        means = any(column.kind == "accuracy" and column.label == "mean" for column in comparison.columns)
        told = ", 'mean' is over the shots, of tasks over the tasks" if means else ""
        parts.append(f"{named[0].upper()}{named[1:]} in %{told}")
    if whole := [column.label for column in comparison.columns if column.kind == "percent" and len(column.parts) == 1]:
        parts.append(f"{', '.join(dict.fromkeys(whole))} in %, of all items together")
    if any(column.kind == "bits_per_byte" for column in comparison.columns):
        parts.append("bits per byte of the original UTF-8, lower is better")
    if any(column.key == "bytes_per_token" for column in comparison.columns):
        parts.append("bytes / token of the held-out text")
    lines = [f"{'; '.join(parts)}.{_bold(comparison)}"] if parts else [_bold(comparison).strip()]
    lines = [line for line in lines if line]
    if counts:
        last = f"the last {comparison.checkpoints} checkpoints" if comparison.checkpoints > 1 else "the last checkpoint"
        lines.append(f"Scored on {', '.join(counts)}, at {last}.")
    lines += averaged_weights(comparison)
    lines += _averages(comparison)
    perplexities = [column for column in comparison.columns if column.kind == "perplexity"]
    lines += _perplexity_a_token([column for column in perplexities if column.field], comparison)
    if any(column.parts for column in perplexities):
        lines.append(
            "Perplexity is 2 to the mean bits of the text that should follow, whatever its tokens (over seeds, too, of "
            "the mean bits); it is compared and tested in bits."
        )
    return lines


def _documents(column: Measure) -> str:
    """What bits per byte are of."""
    if column.field in HELDOUT_SETS:
        return {"clean": "clean ones among them", "concatenated": "of them concatenated"}[column.label]
    whole = " end to end" if column.field.endswith(CONCATENATED) else ""
    return f"documents of {column.group}{whole}" if column.field else "held-out documents"


def _perplexity_a_token(columns: Sequence[Measure], comparison: Comparison) -> list[str]:
    """What it is of, and where it says nothing of the difference of two rows."""
    if not columns:
        return []
    lines = ["Perplexity of a set of texts is 2 to its bits a token; it is compared and tested in bits."]
    other = [column.group for column in columns if not texts_cut_alike(column, list(comparison.scores.values()))]
    if other:
        named = ", ".join(dict.fromkeys(other))
        lines.append(f"Perplexity does not compare rows that cut texts into other tokens, as those of {named} are.")
    return lines


def _averages(comparison: Comparison) -> list[str]:
    """What each mean over tasks is of, and what the mean over all tasks leaves out."""
    lines = []
    every = {part.task: part for column in comparison.columns for part in column.parts}
    for column in comparison.columns:
        tasks = list(dict.fromkeys(part.task for part in column.parts))
        if len(tasks) < 2 and (column.key != AVERAGE or not tasks):
            continue
        others = [part for task, part in every.items() if task not in tasks] if column.key == AVERAGE else []
        left = ", ".join(f"{comparison.name(part.task)} ({part.family})" for part in others)
        named = ", ".join(map(comparison.name, tasks))
        lines.append(
            f"{column.group}: the mean of {named} by {' and '.join(column.families)}, each task weighing the same"
            f"{f'; not in it: {left}' if left else ''}."
        )
    return lines


def _bold(comparison: Comparison) -> str:
    if not any(cell.best for _, _, cell in _finished_cells(comparison)):
        return ""
    within = " in each group of rows" if comparison.table.bold == "group" else ""
    return f" Bold: best of what decides{within}."


def _spread(comparison: Comparison) -> list[str]:
    scored = [
        (column, cell)
        for _, column, cell in _finished_cells(comparison)
        if column.scored and cell.half_width is not None
    ]
    over = {cell.over for _, cell in scored if cell.over}
    lines = []
    if "seeds" in over:
        seeds = sorted({cell.seeds for column, cell in scored if cell.over == "seeds"})
        lines.append(
            "± is half the 95 % interval of a number, over other seeds and other items "
            f"({' or '.join(map(str, seeds))} seeds a row; what a seed does to a row is taken from all rows)."
        )
    if "items" in over:
        which = "± of what no training has part in" if "seeds" in over else "±"
        lines.append(f"{which} is half the 95 % interval over other items alone.")
    shown = any(
        cell.half_width is not None and spread_shows(column, cell) for _, column, cell in _finished_cells(comparison)
    )
    if shown and not over:
        lines.append("± is half the 95 % interval of a number over other seeds.")
    if any(
        cell.checkpoint_spread is not None and cell.half_width is not None for _, _, cell in _finished_cells(comparison)
    ):
        lines.append(
            f"After the slash: standard deviation over the last {comparison.checkpoints} checkpoints of a "
            "run, which says how far it still moves and not what another seed would give."
        )
    return lines


def _tests(comparison: Comparison) -> list[str]:
    if not any(cell.test for _, _, cell in _finished_cells(comparison)):
        alone = _without_baseline(comparison)
        if len(comparison.finished) > 1:
            return [f"No significance test: no score allows one against {_baseline(comparison)}.", *alone]
        return alone or ["No significance test: there is nothing to compare the first row with."]
    judged = [effect for effect in comparison.effects if effect.p_adjusted is not None]
    rows = [cell for _, _, cell in _finished_cells(comparison) if cell.p_adjusted is not None]
    lines = []
    if rows:
        lines.append(f"* p < 0.05, ** p < 0.01 against {_baseline(comparison)}: two-sided, paired, adjusted.")
    elif judged:
        lines.append("No row is marked: the sentences above judge what each factor does over all rows.")
    else:
        lines.append(f"No difference of {_primary(comparison)} can be judged, so none is marked.")
    if comparison.exploratory:
        lines.append(
            f"{EXPLORATORY} Exploratory: these measures do not decide the question (experiment.table.primary names "
            "those that do); their differences are not adjusted for each other, so none is marked."
        )
    if judged:
        together = f"the {len(judged)} effects on {_primary(comparison)} are judged together" if len(judged) > 1 else ""
        lines.append(
            "An effect is tested over seeds and items, both taken as random (each item's score averaged over "
            "checkpoints and, for the mean, shots). How far seeds move it is estimated from its own and from all rows "
            f"together{f'; {together}, so that p-values and intervals hold for all at once' if together else ''}."
        )
    return [*lines, *_without_baseline(comparison)]


def _without_baseline(comparison: Comparison) -> list[str]:
    """Which rows are compared with none, since the one that the table has for them has no finished run."""
    wanted = (comparison.table.baseline or {}).items()
    alone = [
        _labels_of(comparison, row)
        for row in comparison.finished
        if (
            any(row.labels[comparison.factors.index(factor)] != label for factor, label in wanted)
            if row.baseline is None
            else not comparison.rows[row.baseline].runs
        )
    ]
    if not alone:
        return []
    return [f"Not tested, as the row that they would be compared with is not there: {'; '.join(some(alone))}."]


def _primary(comparison: Comparison) -> str:
    """The measures that decide, in words."""
    scored = [column for column in comparison.columns if column.scored]
    decide = [heading(column) for column in scored if column.key in comparison.primary]
    named = "the table" if len(decide) == len(scored) else ", ".join(decide or comparison.table.primary)
    return f"{named} (chosen by experiment.table.primary)" if comparison.table.primary else named


def _few_items(comparison: Comparison) -> list[str]:
    """Which measures are of so few items that they allow no inference."""
    few: dict[str, Cell] = {}
    for _, column, cell in _finished_cells(comparison):
        if too_few_items(column, cell):
            few[heading(column)] = min(cell, few.get(heading(column), cell), key=lambda each: each.fewest)
    if not few:
        return []
    fits = {True: " whose prompt fits every run", False: ""}
    named = ", ".join(f"{name} ({cell.fewest}{fits[cell.fitting]})" for name, cell in few.items())
    return [
        f"Too few items for an interval, a test or a best number, which take {ITEMS_TO_JUDGE} (of a mean, in its "
        f"smallest task): {named}."
    ]


def _few_seeds(comparison: Comparison) -> list[str]:
    """Rows with scores that are not judged for want of seeds that the row they are compared with has too."""
    names = dict.fromkeys(
        _labels_of(comparison, row)
        for row, column, cell in _finished_cells(comparison)
        if column.scored and column.of_model and _lacks_seeds(cell, column, comparison.rows[row.baseline or 0])
    )
    if not names:
        return []
    rows = "every row" if len(names) == len(comparison.finished) else "; ".join(some(list(names)))
    return [
        f"No ±, mark or bold number without {SEEDS_TO_JUDGE} seeds that the row compared with has too; scores lack "
        f"them in {rows}."
    ]


def _lacks_seeds(cell: Cell, column: Measure, base: Arm) -> bool:
    return 0 < cell.seeds < SEEDS_TO_JUDGE or (unjudged(column, cell) and cell.ground == base.cells[column.key].ground)


def _baseline(comparison: Comparison) -> str:
    if comparison.table.baseline:
        wanted = ", ".join(" ".join(map(comparison.name, pair)) for pair in comparison.table.baseline.items())
        return f"the row with {wanted} and otherwise the same labels"
    return f"the first row ({', '.join(map(comparison.name, comparison.rows[0].labels)) or 'the only one'})"


def _detectable(comparison: Comparison) -> list[str]:
    found = []
    for column in comparison.columns:
        cells = [row.cells[column.key] for row in comparison.finished]
        known = [cell.detectable for cell in cells if cell.detectable is not None]
        if known and column.main and not column.key.endswith("_shot"):
            low, high = (size(bound, column) for bound in (min(known), max(known)))
            found.append(f"{heading(column)} {low if low == high else f'{low} to {high}'}")
    if not found:
        return []
    return [
        "The smallest true difference of rows that so many seeds and items show with a probability of 80 %: "
        f"{'; '.join(found)}."
    ]


def _plain(comparison: Comparison) -> list[str]:
    if not comparison.table.plain_t_test:
        return []
    counts = {cell.seeds * cell.checkpoints for _, column, cell in _finished_cells(comparison) if column.scored}
    if max(counts, default=0) < 2:
        return ["No plain t-test: it needs two seeds or checkpoints."]
    numbers = " or ".join(map(str, sorted(counts)))
    return [
        f"p (plain t): unpaired t-test over the means of each seed and checkpoint ({numbers} numbers a row), as papers "
        "have it. Checkpoints of one run are not independent, so it finds too much."
    ]


def _repeated(comparison: Comparison) -> list[str]:
    """Which rows read text more than once; a row that repeats it has seen less text than its budget says."""
    epochs = [
        (_labels_of(comparison, row), max(float(run.training.get("epochs", 0.0)) for run in row.runs))
        for row in comparison.finished
    ]
    repeating = [(name, count) for name, count in epochs if count > 1]
    if not repeating:
        return []
    counts = [count for _, count in repeating]
    low, high = (f"{count:.3g}" for count in (min(counts), max(counts)))
    between = low if low == high else f"{low} to {high}"
    who = "every run" if len(repeating) == len(epochs) else "; ".join(some([name for name, _ in repeating]))
    return [f"Text was repeated, {between} epochs: {who}."]


def _redrawn(comparison: Comparison) -> list[str]:
    """Which rows with BPE-dropout read the same tokens in several epochs, which the method draws anew for each."""
    found: list[tuple[str, int, float]] = []
    for row in comparison.finished:
        for run in row.runs:
            encoder, epochs = run.config.get("encoder") or {}, float(run.training.get("epochs") or 0.0)
            draws = int(encoder.get("draws") or 1)
            pairs = (run.config.get("packing") or {}).get("kind") == "pair"  # contexts of documents have no draws
            if pairs and encoder.get("kind") == "dropout" and epochs > draws:
                found.append((_labels_of(comparison, row), draws, epochs))
    if not found:
        return []
    names = "; ".join(some(list(dict.fromkeys(name for name, _, _ in found))))
    draws, epochs = min(draws for _, draws, _ in found), max(epochs for _, _, epochs in found)
    often = "once" if draws == 1 else f"{draws} times"
    return [
        f"BPE-dropout drew tokens {often} for up to {epochs:.3g} epochs, which read the same tokens again, where the "
        f"method draws them anew each time (encoder.draws): {names}."
    ]


def _overlap(comparison: Comparison) -> list[str]:
    """How much of the held-out text stands in training text, which `fairness` proved to be the same in all runs."""
    corpora = [run.corpus for row in comparison.finished for run in row.runs if "overlap" in run.corpus]
    if not corpora:
        return []
    overlap, moved = corpora[0]["overlap"], corpora[0]["moved"]["documents"]
    above = ", ".join(f"above {level} % in {overlap[f'above_{level}']:,}" for level in (80, 50, 20))
    mean = f"{100 * overlap['mean']:.1f} % in the mean"
    near = f"{moved:,} near copies of training text, or of one group with one, had been moved to training"
    return [
        f"Overlap with training text, as the share of a held-out document's 8-grams in one training document: {above} "
        f"of the corpus' {overlap['documents']:,} held-out documents, {mean}; {near if moved else 'none was moved'}."
    ]


def _gaps(row: Arm, comparison: Comparison) -> list[str]:
    name = _labels_of(comparison, row)
    lines = [f"— {name}: {reason}" for reason in row.missing]
    values = {heading(column): row.cells[column.key].value for column in comparison.columns}
    if row.runs and not row.missing:
        absent = [measure for measure, value in values.items() if value is None]
        lines += [f"— {name}: no value for {', '.join(absent)}"] if absent else []
    broken = [measure for measure, value in values.items() if not math.isfinite(value or 0.0)] if row.runs else []
    return lines + ([f"{name}: not a finite number: {', '.join(broken)}; left out of the tests"] if broken else [])


def _labels_of(comparison: Comparison, row: Arm) -> str:
    return ", ".join(map(comparison.name, row.labels))


def _finished_cells(comparison: Comparison) -> Iterator[tuple[Arm, Measure, Cell]]:
    for row in comparison.finished:
        for column in comparison.columns:
            yield row, column, row.cells[column.key]


def training_warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before any number, because it makes rows unlike."""
    unlike = [
        *_lossy(comparison),
        *_brought(comparison),
        *_skipped(comparison),
        *_starts(comparison),
    ]
    return [*unlike, *_survivors(comparison), *held_seeds(comparison)]


def looked_before(looks: Mapping[str, int]) -> list[str]:
    """Warn of earlier reports on fewer seeds of these trainings: `looks` has the seeds of each, by sweep."""
    if not looks:
        return []
    named = ", ".join(f"{name} ({seeds} seeds)" for name, seeds in looks.items())
    return [
        f"Warning: an earlier report judged fewer seeds of these trainings: {named}. If seeds were added because of "
        "what it showed, p-values are too small: looks at 3, 5, 7 and 10 seeds find an effect by chance in some 10 % "
        "of comparisons instead of 5 %. Plan the seeds of a new comparison beforehand."
    ]


def held_seeds(comparison: Comparison) -> list[str]:
    """What the seeds of rows do not vary, so that no spread and no test has it."""
    if not comparison.held:
        return []
    held = " and ".join(f"seeds.{part}" for part in comparison.held)
    return [
        f"Warning: {held} {'is' if len(comparison.held) == 1 else 'are'} the same in all runs of a row: intervals, "
        "tests and detectable differences are over the rest of what a seed moves, and not over this."
    ]


def averaged_weights(comparison: Comparison) -> list[str]:
    """That the models of rows are means of several checkpoints, and of which rows where not of all."""
    numbers = {
        comparison.row_name(row): int((row.runs[0].config.get("evaluation") or {}).get("average_checkpoints", 1))
        for row in comparison.finished
        if row.runs
    }
    if set(numbers.values()) <= {1}:
        return []
    named = [f"{number} in {name}" for name, number in numbers.items() if number > 1]
    alike = len(set(numbers.values())) == 1
    if alike:
        many = f"{max(numbers.values())} checkpoints"
        return [f"Weights that are scored without fine-tuning are the mean of those of {many}, up to the scored one."]
    return [
        "Weights that are scored without fine-tuning are the mean of those of several checkpoints up to the scored "
        f"one, by row: {'; '.join(some(named))}."
    ]


def _lossy(comparison: Comparison) -> list[str]:
    """Rows whose models have less to predict than the text that their bits are divided by."""
    rows = [comparison.row_name(row) for row in comparison.finished if row.loses_text(comparison.scores)]
    if not rows:
        return []
    return [
        "Warning: the tokenizers of these rows lose some of the scored text (tokenizer.lossless=false), which their "
        "models need not predict, while bits per byte are of all of it; these are not judged against rows that lose "
        f"none, and compare with each other alone, if at all: {'; '.join(some(rows))}."
    ]


def _brought(comparison: Comparison) -> list[str]:
    """Rows whose tokenizer was there already, beside others: it may have been made of the text that is scored."""
    vocabularies = {run.vocabulary for row in comparison.finished for run in row.runs}
    rows = [
        comparison.row_name(row)
        for row in comparison.finished
        if any((run.config.get("tokenizer") or {}).get("kind") == "existing" for run in row.runs)
    ]
    if not rows or len(vocabularies) < 2:
        return []
    return [
        "Warning: the tokenizers of these rows were there already (tokenizer=existing). On what text they were "
        "trained, and whether held-out text was in it, is not known here, while a tokenizer that a run trains sees "
        f"training text alone: {'; '.join(some(rows))}."
    ]


def _skipped(comparison: Comparison) -> list[str]:
    """Rows whose models did not learn from all that they have read."""
    rows = []
    for row in comparison.finished:
        most = max((float(run.training.get("skipped_steps") or 0.0) for run in row.runs), default=0.0)
        if most:
            steps = max(int(run.training.get("steps") or 0) for run in row.runs)
            rows.append(f"{comparison.row_name(row)}: up to {most:,.0f} of {steps:,} steps")
    if not rows:
        return []
    return [
        "Warning: training.skip_bad_steps left out steps, whose text counts as read although nothing was learned from "
        f"it: {'; '.join(some(rows))}."
    ]


def _starts(comparison: Comparison) -> list[str]:
    """What seeds do not vary where training goes on from checkpoints, and which rows go on from another than theirs."""
    rows = [comparison.row_name(row) for row in comparison.finished if goes_on_otherwise(row, comparison)]
    if rows:
        return [
            "Rows that go on from another checkpoint than the row they are compared with are not judged, since seeds "
            "vary the continuation alone, and another pretraining might have moved them further: "
            f"{'; '.join(some(rows))}."
        ]
    if any(run.start for row in comparison.finished for run in row.runs):
        return ["Training goes on from checkpoints, so seeds vary the continuation alone."]
    return []


def _survivors(comparison: Comparison) -> list[str]:
    """Rows of which some runs diverged, and those of which none is left."""
    diverged = [row for row in comparison.rows if row.diverged]
    lost = [comparison.row_name(row) for row in diverged if not row.runs]
    rows = [f"{comparison.row_name(row)}: {row.diverged} beside {len(row.runs)}" for row in diverged if row.runs]
    told = [f"Runs of these rows diverged and none is left, so they have no numbers: {'; '.join(some(lost))}."]
    if not rows:
        return told if lost else []
    return [
        *(told if lost else []),
        "Warning: some runs of these rows diverged and are not in the numbers, so that those that are left look better "
        f"than the row is: {'; '.join(some(rows))}.",
    ]


def goes_on_otherwise(row: Arm, comparison: Comparison) -> bool:
    """Whether a row and the one it is compared with go on from different checkpoints, or one from none."""
    base = comparison.rows[row.baseline] if row.baseline is not None else row
    return bool(row.runs and base.runs) and row.runs[0].start != base.runs[0].start


_SIZES: tuple[tuple[Measure, str, Callable[[float], str]], ...] = (
    (STEPS, "steps", "{:,.0f}".format),
    (BATCH_BYTES, "text a step", format_size),
    (CONTEXT_BYTES, "text a context", format_size),
)
_SIZE_MEANINGS = {
    STEPS.key: "more steps are more updates of the weights",
    BATCH_BYTES.key: "more text a step is a less noisy update",
    CONTEXT_BYTES.key: "more text a context is more to predict from",
}
_SAME_VOCABULARY_SIZE = 1.01
"""How many times as many tokens a vocabulary may have and be called of one size."""
_REPLACED_OPTIONS = {"training.batch_bytes": "training.global_batch", "model.context_bytes": "model.context_length"}
_SIZE_OPTIONS = {BATCH_BYTES.key: "training.batch_bytes", CONTEXT_BYTES.key: "model.context_bytes"}


def other_sizes(comparison: Comparison) -> list[str]:
    """Where runs differ in steps, text a step or text a context: the ranges, what that does, and what takes it out."""
    training = [run.training for row in comparison.finished for run in row.runs]
    found = [(column, name, words) for column, name, words in _SIZES if unequal(column, training)]
    if not found or len(comparison.finished) < 2:
        return []
    ranges = []
    for column, name, words in found:
        values = [float(result[column.field]) for result in training if result.get(column.field) is not None]
        low, high = min(values), max(values)
        apart = f"about {words(low)}, by {high / low - 1:.0%}" if words(low) == words(high) else ""
        ranges.append(f"{name} {apart or f'{words(low)} to {words(high)}'}")
    meaning = ", ".join(_SIZE_MEANINGS[column.key] for column, _, _ in found)
    remedies = [_SIZE_OPTIONS[column.key] for column, _, _ in found if _can_be_made_alike(comparison, column)]
    given = [f"{remedy} (with {_REPLACED_OPTIONS[remedy]}=0)" for remedy in remedies]
    alike = f" {' and '.join(given)} make{'s' if len(remedies) == 1 else ''} them alike." if remedies else ""
    return [f"Not alike in all runs: {'; '.join(ranges)}. This is part of every difference: {meaning}.{alike}"]


def other_vocabularies(comparison: Comparison) -> list[str]:
    """The sizes of vocabularies that differ where the table does not ask what a size does."""
    rows = {
        comparison.row_name(row): run.vocabulary_size
        for row in comparison.finished
        for run in row.runs[:1]
        if run.vocabulary_size is not None
    }
    if (
        "tokenizer.vocab_size" in comparison.factors
        or not rows
        or max(rows.values()) <= _SAME_VOCABULARY_SIZE * min(rows.values())
    ):
        return []
    named = some([f"{name} {size:,}" for name, size in rows.items()])
    return [
        f"Vocabularies are not of one size: {'; '.join(named)} tokens. This is part of every difference: a larger one "
        "cuts text into fewer tokens, and has more parameters."
    ]


def _can_be_made_alike(comparison: Comparison, column: Measure) -> bool:
    """Whether some run does not give the size in bytes; where all do, what is left is rounding."""
    remedy = _SIZE_OPTIONS.get(column.key)
    given = [run.fields.get(remedy, "null") for row in comparison.finished for run in row.runs] if remedy else []
    return "null" in given
