"""Tables in the style of a paper, built from records alone: means, error bars, tests, and a refusal to be unfair.

In come `FinishedRun`s of `runs`: directories of scores, and what each run was made with. `fairness` proves that runs
differ in the declared factors only, or names every other difference and makes no table. `compare` puts items,
checkpoints, shots and seeds together to the cells of `columns`; `judgement` says by the tests of `significance` which
differences are more than luck, and `verdict` and `notes` in words what must be known to read them. `items` is what is
behind the numbers: each item, and where rows part. `report` writes it all, by `table`, `formats`, `page` and `figures`;
`paper` is a paper's own table, which stands beside ours. `data_reports` are those on tokenizers and orderings, for
which no model is trained.

What must hold: no number is typed or rounded before the end, and every mark has the test it comes from beside it. The
room knows no stage and starts nothing, so that a report can be made of artefacts from anywhere.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.reporting.significance import paired_test

__all__ = ["paired_test"]


def __getattr__(name: str) -> object:
    """Import the promised names when they are first used: they need numpy and scipy."""
    if name in __all__:
        from paribus.reporting import significance

        return getattr(significance, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
