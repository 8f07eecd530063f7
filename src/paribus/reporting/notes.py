"""Notes of a table: the meaning of ±, the tests, missing runs and scores, and differences that make rows unlike."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paribus.config.units import format_size
from paribus.reporting.columns import Cell, texts_cut_alike, unequal
from paribus.reporting.compare import Arm, Comparison, common_text_notes
from paribus.reporting.judgement import too_few_items
from paribus.reporting.measures import (
    AVERAGE,
    BATCH_BYTES,
    CONCATENATED,
    CONTEXT_BYTES,
    HELDOUT_SETS,
    ITEMS_TO_JUDGE,
    STEPS,
    Measure,
)
from paribus.reporting.runs import FinishedRun, LeftOut, RunScores
from paribus.reporting.table import EXPLORATORY, first_lines, heading, size, spread_shows


@dataclass(frozen=True)
class Notes:
    """Sentences that accompany a table."""

    warnings: tuple[str, ...]
    """Notes that have to be read with every number."""
    legend: tuple[str, ...]
    """Notes on the meaning of numbers and marks, and on missing runs and scores."""
    details: tuple[str, ...]
    """Notes on tests and equal settings, and on all else that a careful reader asks for."""

    @property
    def lines(self) -> list[str]:
        """All notes, in the order in which a reader needs them."""
        return [*self.warnings, *self.legend, *self.details]


def notes(comparison: Comparison) -> Notes:
    """All notes of a table."""
    return Notes(
        warnings=(
            *_lossy(comparison),
            *_existing_tokenizers(comparison),
            *_skipped(comparison),
            *_starting_checkpoints(comparison),
            *_diverged(comparison),
            *_held_seeds(comparison),
        ),
        legend=(
            *_units(comparison),
            *_spread(comparison),
            *_marks(comparison),
            *_few_items(comparison),
            *_repeated(comparison),
            *_redrawn(comparison),
            *first_lines([line for row in comparison.rows for line in _gaps(row, comparison)]),
        ),
        details=(
            *_tests(comparison),
            *_detectable(comparison),
            *_plain(comparison),
            *(["In brackets: the paper's number, and ours minus it."] if comparison.table.paper else []),
            *_truncated(comparison),
            *_cut_sources(comparison),
            *_cut_documents(comparison),
            *_boundary_tokens(comparison),
            *_overlap(comparison),
            *other_sizes(comparison),
            *_other_vocabularies(comparison),
            *comparison.proof.sentences(),
            *common_text_notes(comparison.common_text),
        ),
    )


def looked_before(looks: Mapping[str, int]) -> Iterator[str]:
    """Warn of earlier reports on fewer seeds of these trainings: `looks` has the seeds of each, by sweep."""
    if looks:
        named = ", ".join(f"{name} ({seeds} seeds)" for name, seeds in looks.items())
        yield (
            f"Warning: an earlier report judged fewer seeds of these trainings: {named}. If seeds were added because "
            "of what it showed, p-values are too small: looks at 3, 5, 7 and 10 seeds find an effect by chance in some "
            "10 % of comparisons instead of 5 %. Plan the seeds of a new comparison beforehand."
        )


def _units(comparison: Comparison) -> Iterator[str]:
    """Units of the columns, and the items and checkpoints that are scored."""
    parts, counts, tasks = [], [], set()
    for column in comparison.columns:
        items = max((row.cells[column.key].items for row in comparison.finished), default=0)
        if len(column.parts) == 1 and items and column.parts[0].task not in tasks:
            tasks.add(column.parts[0].task)
            counts.append(f"{items:,} items of {comparison.name(column.parts[0].task)}")
        elif column.kind == "bits_per_byte" and items:
            counts.append(f"{items:,} {_documents(column)}")
    accuracies = [column for column in comparison.columns if column.kind == "accuracy"]
    if named := ", ".join(dict.fromkeys(family for column in accuracies for family in column.families)):
        means = any(column.label == "mean" for column in accuracies)
        over = ", 'mean' is over the shots, of tasks over the tasks" if means else ""
        parts.append(f"{named[0].upper()}{named[1:]} in %{over}")
    if rates := [column.label for column in comparison.columns if column.kind == "percent" and len(column.parts) == 1]:
        parts.append(f"{', '.join(dict.fromkeys(rates))} in %, of all items together")
    if any(column.kind == "bits_per_byte" for column in comparison.columns):
        parts.append("bits per byte of the original UTF-8, lower is better")
    if any(column.key == "bytes_per_token" for column in comparison.columns):
        parts.append("bytes / token of the held-out text")
    sentences = [f"{'; '.join(parts)}."] if parts else []
    if any(cell.best for _, _, cell in _finished_cells(comparison)):
        within = " in each group of rows" if comparison.table.bold == "group" else ""
        sentences.append(f"Bold: best of what decides{within}.")
    if sentences:
        yield " ".join(sentences)
    if counts:
        last = f"the last {comparison.checkpoints} checkpoints" if comparison.checkpoints > 1 else "the last checkpoint"
        yield f"Scored on {', '.join(counts)}, at {last}."
    yield from _averaged_weights(comparison)
    yield from _averages(comparison)
    yield from _perplexities(comparison)


def _documents(column: Measure) -> str:
    if column.field in HELDOUT_SETS:
        return {"clean": "clean ones among them", "concatenated": "of them concatenated"}[column.label]
    end_to_end = " end to end" if column.field.endswith(CONCATENATED) else ""
    return f"documents of {column.group}{end_to_end}" if column.field else "held-out documents"


def _averaged_weights(comparison: Comparison) -> Iterator[str]:
    configs = (row.runs[0].config.get("evaluation") or {} for row in comparison.finished)
    numbers = {int(config.get("average_checkpoints", 1)) for config in configs}
    if len(numbers) == 1 and (count := numbers.pop()) > 1:
        yield (
            f"Weights that are scored without fine-tuning are the mean of those of {count} checkpoints, up to the "
            "scored one."
        )


def _averages(comparison: Comparison) -> Iterator[str]:
    """Tasks of each mean over tasks, and those that the mean over all leaves out."""
    parts = {part.task: part for column in comparison.columns for part in column.parts}
    for column in comparison.columns:
        tasks = list(dict.fromkeys(part.task for part in column.parts))
        if len(tasks) < 2 and (column.key != AVERAGE or not tasks):
            continue
        excluded = [part for task, part in parts.items() if task not in tasks] if column.key == AVERAGE else []
        others = ", ".join(f"{comparison.name(part.task)} ({part.family})" for part in excluded)
        names = ", ".join(map(comparison.name, tasks))
        yield (
            f"{column.group}: the mean of {names} by {' and '.join(column.families)}, each task weighing the same"
            f"{f'; not in it: {others}' if others else ''}."
        )


def _perplexities(comparison: Comparison) -> Iterator[str]:
    columns = [column for column in comparison.columns if column.kind == "perplexity"]
    of_texts = [column for column in columns if column.field]
    if of_texts:
        yield "Perplexity of a set of texts is 2 to its bits a token; it is compared and tested in bits."
    scores = list(comparison.scores.values())
    if unlike := [column.group for column in of_texts if not texts_cut_alike(column, scores)]:
        named = ", ".join(dict.fromkeys(unlike))
        yield f"Perplexity does not compare rows that cut texts into other tokens, as those of {named} are."
    if any(column.parts for column in columns):
        yield (
            "Perplexity is 2 to the mean bits of the text that should follow, whatever its tokens (over seeds, too, of "
            "the mean bits); it is compared and tested in bits."
        )


def _spread(comparison: Comparison) -> Iterator[str]:
    """Spreads that no caption explains: ± in a table without scores, and spreads over checkpoints."""
    cells = [(column, cell) for _, column, cell in _finished_cells(comparison) if cell.half_width is not None]
    if not any(column.scored for column, _ in cells) and any(spread_shows(column, cell) for column, cell in cells):
        yield "± is half the 95 % interval of a number over other seeds."
    if any(cell.checkpoint_spread is not None for _, cell in cells):
        yield (
            f"After the slash: standard deviation over the last {comparison.checkpoints} checkpoints of a "
            "run, which says how far it still moves and not what another seed would give."
        )


def _marks(comparison: Comparison) -> Iterator[str]:
    if any(cell.p_adjusted is not None for _, _, cell in _finished_cells(comparison)):
        yield f"* p < 0.05, ** p < 0.01 against {_baseline(comparison)}: two-sided, paired, adjusted."
    elif any(effect.p_adjusted is not None for effect in comparison.effects):
        yield "No row is marked: the sentences above judge what each factor does over all rows."
    if comparison.exploratory:
        yield (
            f"{EXPLORATORY} Exploratory: these measures do not decide the question (experiment.table.primary names "
            "those that do); their differences are not adjusted for each other, so none is marked."
        )


def _tests(comparison: Comparison) -> Iterator[str]:
    """The test of effects, and rows that are not tested since the row to compare them with has no finished run."""
    if judged := [effect for effect in comparison.effects if effect.p_adjusted is not None]:
        together = f"the {len(judged)} effects on {_primary(comparison)} are judged together" if len(judged) > 1 else ""
        yield (
            "An effect is tested over seeds and items, both taken as random (each item's score averaged over "
            "checkpoints and, for the mean, shots). How far seeds move it is estimated from its own and from all rows "
            f"together{f'; {together}, so that p-values and intervals hold for all at once' if together else ''}."
        )
    baseline = (comparison.table.baseline or {}).items()
    alone = [
        _labels_of(comparison, row)
        for row in comparison.finished
        if (
            any(row.labels[comparison.factors.index(factor)] != label for factor, label in baseline)
            if row.baseline is None
            else not comparison.rows[row.baseline].runs
        )
    ]
    if alone:
        yield f"Not tested, as the row that they would be compared with is not there: {_listed(alone)}."


def _primary(comparison: Comparison) -> str:
    scored = [column for column in comparison.columns if column.scored]
    decide = [heading(column) for column in scored if column.key in comparison.primary]
    named = "the table" if len(decide) == len(scored) else ", ".join(decide or comparison.table.primary)
    return f"{named} (chosen by experiment.table.primary)" if comparison.table.primary else named


def _few_items(comparison: Comparison) -> Iterator[str]:
    few: dict[str, Cell] = {}
    for _, column, cell in _finished_cells(comparison):
        if too_few_items(column, cell):
            few[heading(column)] = min(cell, few.get(heading(column), cell), key=lambda candidate: candidate.fewest)
    if few:
        fits = {True: " whose prompt fits every run", False: ""}
        named = ", ".join(f"{name} ({cell.fewest}{fits[cell.fitting]})" for name, cell in few.items())
        yield (
            f"No interval, test or bold number below {ITEMS_TO_JUDGE} items (of a mean, in its smallest task): {named}."
        )


def _baseline(comparison: Comparison) -> str:
    if comparison.table.baseline:
        labels = ", ".join(" ".join(map(comparison.name, pair)) for pair in comparison.table.baseline.items())
        return f"the row with {labels} and otherwise the same labels"
    return f"the first row ({', '.join(map(comparison.name, comparison.rows[0].labels)) or 'the only one'})"


def _detectable(comparison: Comparison) -> Iterator[str]:
    sizes = []
    for column in comparison.columns:
        cells = [row.cells[column.key] for row in comparison.finished]
        known = [cell.detectable for cell in cells if cell.detectable is not None]
        if known and column.main and not column.key.endswith("_shot"):
            sizes.append(f"{heading(column)} {_range(size(min(known), column), size(max(known), column))}")
    if sizes:
        yield (
            "With these seeds and items, a true difference of this size is detected with a probability of 80 %: "
            f"{'; '.join(sizes)}."
        )


def _plain(comparison: Comparison) -> Iterator[str]:
    counts = {cell.seeds * cell.checkpoints for _, column, cell in _finished_cells(comparison) if column.scored}
    if comparison.table.plain_t_test and max(counts, default=0) < 2:
        yield "No plain t-test: it needs two seeds or checkpoints."
    elif comparison.table.plain_t_test:
        yield (
            f"p (plain t): unpaired t-test over the means of each seed and checkpoint "
            f"({' or '.join(map(str, sorted(counts)))} numbers a row), as papers have it. Checkpoints of one run are "
            "not independent, so it finds too much."
        )


def _repeated(comparison: Comparison) -> Iterator[str]:
    """Rows that read text more than once; these have seen less distinct text than their budget has."""
    epochs = [
        (_labels_of(comparison, row), max(float(run.training.get("epochs", 0.0)) for run in row.runs))
        for row in comparison.finished
    ]
    repeating = [(name, count) for name, count in epochs if count > 1]
    if repeating:
        counts = [count for _, count in repeating]
        between = _range(f"{min(counts):.3g}", f"{max(counts):.3g}")
        rows = "every run" if len(repeating) == len(epochs) else _listed([name for name, _ in repeating])
        yield f"Text was repeated, {between} epochs: {rows}."


def _redrawn(comparison: Comparison) -> Iterator[str]:
    """Rows with BPE-dropout that read the same tokens in several epochs, which the method draws anew for each."""
    rows: list[tuple[str, int, float]] = []
    for row, run in _finished_runs(comparison):
        encoder, epochs = run.config.get("encoder") or {}, float(run.training.get("epochs") or 0.0)
        draws = int(encoder.get("draws") or 1)
        pairs = (run.config.get("packing") or {}).get("kind") == "pair"  # contexts of documents have no draws
        if pairs and encoder.get("kind") == "dropout" and epochs > draws:
            rows.append((_labels_of(comparison, row), draws, epochs))
    if rows:
        draws, epochs = min(draws for _, draws, _ in rows), max(epochs for _, _, epochs in rows)
        often = "once" if draws == 1 else f"{draws} times"
        yield (
            f"BPE-dropout drew the tokens {often} for up to {epochs:.3g} epochs; the method draws them anew for each "
            "(encoder.draws): "
            f"{_listed(list(dict.fromkeys(name for name, _, _ in rows)))}."
        )


def _overlap(comparison: Comparison) -> Iterator[str]:
    """Overlap of the held-out text with training text, which `fairness` proved to be the same in all runs."""
    corpus = next((run.corpus for _, run in _finished_runs(comparison) if "overlap" in run.corpus), None)
    if corpus:
        overlap, moved = corpus["overlap"], corpus["moved"]["documents"]
        above = ", ".join(f"above {level} % in {overlap[f'above_{level}']:,}" for level in (80, 50, 20))
        near = f"{moved:,} near copies of training text, or of one group with one, had been moved to training"
        yield (
            "Overlap with training text, as the share of a held-out document's 8-grams in one training document: "
            f"{above} of the corpus' {overlap['documents']:,} held-out documents, {100 * overlap['mean']:.1f} % in the "
            f"mean; {near if moved else 'none was moved'}."
        )


def _gaps(row: Arm, comparison: Comparison) -> Iterator[str]:
    name = _labels_of(comparison, row)
    yield from (f"— {name}: {reason}" for reason in row.missing)
    values = {heading(column): row.cells[column.key].value for column in comparison.columns} if row.runs else {}
    absent = [measure for measure, value in values.items() if value is None]
    if absent and not row.missing:
        yield f"— {name}: no value for {', '.join(absent)}"
    if broken := [measure for measure, value in values.items() if not math.isfinite(value or 0.0)]:
        yield f"{name}: not a finite number: {', '.join(broken)}; left out of the tests"


def _truncated(comparison: Comparison) -> Iterator[str]:
    """Tasks with prompts that lost their beginning, and the items that were left out for that."""
    for task, out in comparison.left_out.items():
        name = comparison.name(task)
        if out.kept:
            yield (
                f"{name}: of {out.items:,} items {_by_shots(out)} have a prompt that does not fit the context of "
                "some run; all are scored as they were cut, which is not alike in all rows."
            )
        else:
            yield (
                f"{name}: {out.cut:,} of {out.items:,} items are left out in all rows, since their prompt does not "
                "fit the context of some run."
            )


def _by_shots(out: LeftOut) -> str:
    """`98 at 5 shots, 3 at 10`."""
    counts = {shots: len(cut) for shots, cut in sorted(out.by_shots.items()) if cut}
    first, *more = (f"{count:,} at {shots}" for shots, count in counts.items())
    return ", ".join([f"{first} shot{'' if next(iter(counts)) == 1 else 's'}", *more])


def _cut_sources(comparison: Comparison) -> Iterator[str]:
    """Pairs whose targets are scored given only a part of their source."""
    scores = _finished_scores(comparison)
    counts = [score.cut_sources for score in scores]
    if any(counts):
        unlike = "not alike in all rows, which is part of every difference"
        alike = "in all rows alike" if len(set(counts)) == 1 else unlike
        pairs = max(len(score.heldout) for score in scores)
        yield (
            f"Sources longer than the context lost their end, {_between(counts)} of {pairs:,} held-out pairs, {alike}; "
            "a larger model.context_length keeps them whole."
        )


def _cut_documents(comparison: Comparison) -> Iterator[str]:
    """Text that models read of a document in fine-tuned tasks: how much fits the context depends on the tokenizer."""
    scores = _finished_scores(comparison)
    alike = {True: "in all rows alike", False: "finetuning.document_characters lets all rows read the same"}
    for task in sorted({task for score in scores for task, cut in score.documents_cut.items() if cut}):
        sizes = [score.document_bytes[task] for score in scores if task in score.document_bytes]
        yield (
            f"{comparison.name(task)}: documents lost their end where a prompt does not fit the context; the models "
            f"read {_between([round(size) for size in sizes])} bytes of one on average, {alike[len(set(sizes)) == 1]}."
        )


def _boundary_tokens(comparison: Comparison) -> Iterator[str]:
    """Rows with tokens across the boundary of context and choice, and the precision of those scores."""
    scores = {comparison.row_name(row): row.scored(comparison.scores) for row in comparison.finished}
    counts = {name: [score.crossed_choices for score in row_scores] for name, row_scores in scores.items()}
    if rows := [f"{_between(count)} choices of {name}" for name, count in counts.items() if any(count)]:
        share = max(score.omitted for row_scores in scores.values() for score in row_scores)
        omitted = f"at most a share of {share:.1g} of a probability was left out" if share else "nothing was left out"
        yield (
            "A choice whose first token begins in the context is scored by the summed probability of all tokens that "
            f"spell it ({omitted}): {_listed(rows)}."
        )


def _between(counts: Sequence[int]) -> str:
    return _range(f"{min(counts):,}", f"{max(counts):,}")


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _listed(rows: Sequence[str]) -> str:
    return "; ".join(first_lines(rows))


def _labels_of(comparison: Comparison, row: Arm) -> str:
    return ", ".join(map(comparison.name, row.labels))


def _finished_cells(comparison: Comparison) -> Iterator[tuple[Arm, Measure, Cell]]:
    for row in comparison.finished:
        for column in comparison.columns:
            yield row, column, row.cells[column.key]


def _finished_runs(comparison: Comparison) -> list[tuple[Arm, FinishedRun]]:
    return [(row, run) for row in comparison.finished for run in row.runs]


def _finished_scores(comparison: Comparison) -> list[RunScores]:
    return [score for row in comparison.finished for score in row.scored(comparison.scores)]


def _held_seeds(comparison: Comparison) -> Iterator[str]:
    """Seeds that runs of a row share, so that no spread and no test includes what they change."""
    if comparison.held:
        held = " and ".join(f"seeds.{part}" for part in comparison.held)
        yield (
            f"Warning: {held} {'is' if len(comparison.held) == 1 else 'are'} the same in all runs of a row: intervals, "
            "tests and detectable differences do not include the variance of this."
        )


def _lossy(comparison: Comparison) -> Iterator[str]:
    """Rows whose models predict less text than their bits are divided by."""
    if rows := [comparison.row_name(row) for row in comparison.finished if row.loses_text(comparison.scores)]:
        yield (
            "Warning: the tokenizers of these rows lose some of the scored text (tokenizer.lossless=false), so their "
            "bits per byte are too low. They are not judged against rows that lose none: "
            f"{_listed(rows)}."
        )


def _existing_tokenizers(comparison: Comparison) -> Iterator[str]:
    """Rows with an existing tokenizer, beside others: it may have been trained on the text that is scored."""
    runs = _finished_runs(comparison)
    rows = dict.fromkeys(
        comparison.row_name(row) for row, run in runs if (run.config.get("tokenizer") or {}).get("kind") == "existing"
    )
    if rows and len({run.vocabulary for _, run in runs}) > 1:
        yield (
            "Warning: the tokenizers of these rows were there already (tokenizer=existing). On what text they were "
            "trained, and whether held-out text was in it, is not known here, while a tokenizer that a run trains sees "
            f"training text alone: {_listed(list(rows))}."
        )


def _skipped(comparison: Comparison) -> Iterator[str]:
    """Rows whose models did not learn from all text that they read."""
    rows = []
    for row in comparison.finished:
        most = max(float(run.training.get("skipped_steps") or 0.0) for run in row.runs)
        if most:
            steps = max(int(run.training.get("steps") or 0) for run in row.runs)
            rows.append(f"{comparison.row_name(row)}: up to {most:,.0f} of {steps:,} steps")
    if rows:
        yield (
            "Warning: training.skip_bad_steps left out steps, whose text counts as read although nothing was learned "
            f"from it: {_listed(rows)}."
        )


def _starting_checkpoints(comparison: Comparison) -> Iterator[str]:
    """Rows that start from another checkpoint than the row they are compared with; else a note if any has a start."""
    bases = [row if row.baseline is None else comparison.rows[row.baseline] for row in comparison.finished]
    rows = [
        comparison.row_name(row)
        for row, base in zip(comparison.finished, bases, strict=True)
        if base.runs and row.runs[0].start != base.runs[0].start
    ]
    if rows:
        yield (
            "Rows that go on from another checkpoint than the row they are compared with are not judged, since seeds "
            f"vary the continuation alone, and another pretraining might have moved them further: {_listed(rows)}."
        )
    elif any(run.start for _, run in _finished_runs(comparison)):
        yield "Training goes on from checkpoints, so seeds vary the continuation alone."


def _diverged(comparison: Comparison) -> Iterator[str]:
    """Rows of which some runs diverged."""
    diverged = [row for row in comparison.finished if row.diverged]
    if rows := [f"{comparison.row_name(row)}: {row.diverged} beside {len(row.runs)}" for row in diverged]:
        yield (
            "Warning: some runs of these rows diverged and are not in the numbers, so that those that are left look "
            f"better than the row is: {_listed(rows)}."
        )


_SIZES: tuple[tuple[Measure, str, Callable[[float], str], str], ...] = (
    (STEPS, "steps", "{:,.0f}".format, "more steps are more updates of the weights"),
    (BATCH_BYTES, "text a step", format_size, "more text a step is a less noisy update"),
    (CONTEXT_BYTES, "text a context", format_size, "more text a context is more to predict from"),
)
_SAME_VOCABULARY_SIZE = 1.01
"""Largest ratio of vocabulary sizes that count as equal."""
_SIZE_OPTIONS = {
    BATCH_BYTES.key: ("training.batch_bytes", "training.global_batch"),
    CONTEXT_BYTES.key: ("model.context_bytes", "model.context_length"),
}
"""Option that gives a size in bytes, and the option that it replaces, by column key."""


def other_sizes(comparison: Comparison) -> Iterator[str]:
    """Ranges in which runs differ in steps, text a step or text a context, with their effect and the remedy."""
    runs = [run for _, run in _finished_runs(comparison)]
    ranges, meanings, remedies = [], [], []
    for column, name, words, meaning in _SIZES:
        if not unequal(column, [run.training for run in runs]):
            continue
        values = [float(run.training[column.field]) for run in runs if run.training.get(column.field) is not None]
        low, high = min(values), max(values)
        apart = f"about {words(low)}, by {high / low - 1:.0%}" if words(low) == words(high) else ""
        ranges.append(f"{name} {apart or f'{words(low)} to {words(high)}'}")
        meanings.append(meaning)
        option, replaced = _SIZE_OPTIONS.get(column.key, ("", ""))
        # Where all runs give the size in bytes, what is left is rounding.
        if option and any(run.fields.get(option, "null") == "null" for run in runs):
            remedies.append(f"{option} (with {replaced}=0)")
    if ranges and len(comparison.finished) > 1:
        alike = f" {' and '.join(remedies)} make{'s' if len(remedies) == 1 else ''} them alike." if remedies else ""
        meaning = ", ".join(meanings)
        yield f"Not alike in all runs: {'; '.join(ranges)}. This is part of every difference: {meaning}.{alike}"


def _other_vocabularies(comparison: Comparison) -> Iterator[str]:
    """Sizes of vocabularies that differ where `tokenizer.vocab_size` is no factor of the table."""
    first = [(comparison.row_name(row), row.runs[0].vocabulary_size) for row in comparison.finished]
    rows = {name: size for name, size in first if size is not None}
    unlike = bool(rows) and max(rows.values()) > _SAME_VOCABULARY_SIZE * min(rows.values())
    if unlike and "tokenizer.vocab_size" not in comparison.factors:
        yield (
            f"Vocabularies are not of one size: {_listed([f'{name} {size:,}' for name, size in rows.items()])} tokens. "
            "This is part of every difference: a larger one cuts text into fewer tokens, and has more parameters."
        )
