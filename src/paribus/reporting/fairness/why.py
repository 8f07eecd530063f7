"""In what the runs of a table differ, field by field: what was declared, and what is not."""

from collections.abc import Sequence

from paribus.errors import DataError
from paribus.reporting.fairness.equality import Difference, covered, covering
from paribus.reporting.fairness.fairness import differences, score_differences
from paribus.reporting.table.frame import RunRecord
from paribus.reporting.table.scores import RunScores, load
from paribus.store.packages import why_harmless

_NAMED = 6


def explanation(runs: Sequence[RunRecord], factors: Sequence[str]) -> tuple[list[str], bool]:
    """Lines that name each differing field with its values and their runs, and whether a table may be made."""
    found = differences(runs, factors)
    undeclared = [*found, *score_differences(_scores(runs))]
    paths = {difference.path for difference in found}
    allowed = covering([run.fields for run in runs], factors)
    declared = [
        difference
        for difference in differences(runs, ())
        if difference.path not in paths and covered(difference.path, allowed)
    ]
    labels = {run.run_id: f"{' '.join(run.factors.values())} seed {run.seed} ({run.run_id})" for run in runs}
    lines = [f"{len(runs)} finished runs; declared to differ: {', '.join(factors) or 'nothing'}, and the seed."]
    lines += _listed("Declared, and differing:", declared, labels)
    lines += _listed("Not declared, so that the table is refused:", undeclared, labels)
    lines += _harmless(runs, labels)
    lines += [] if undeclared else ["Nothing else could change a number: the table may be made."]
    return lines, not undeclared


def _harmless(runs: Sequence[RunRecord], labels: dict[str, str]) -> list[str]:
    """Packages that differ where they decide nothing, each with the reason."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for name, versions in run.harmless.items():
            found.setdefault(name, {}).setdefault(versions, []).append(run.run_id)
    differences = [
        Difference(f"{name}: {why_harmless(name)}", tuple((version, tuple(ids)) for version, ids in versions.items()))
        for name, versions in sorted(found.items())
        if len(versions) > 1
    ]
    return _listed("Differs, but cannot change a number:", differences, labels)


def _listed(title: str, found: Sequence[Difference], labels: dict[str, str]) -> list[str]:
    lines = [title] if found else []
    for difference in found:
        lines.append(f"  {difference.path}")
        for value, runs in difference.values:
            more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
            lines.append(f"    {value}: {', '.join(labels[run] for run in runs[:_NAMED])}{more}")
    return lines


def _scores(runs: Sequence[RunRecord]) -> dict[str, RunScores]:
    """Scores that can be read, by run id."""
    found: dict[str, RunScores] = {}
    for run in runs:
        try:
            found |= {run.run_id: load(run.scores, run.finetuned)} if run.scores else {}
        except DataError:
            continue
    return found
