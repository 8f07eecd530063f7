"""Tables in the style of a paper, built from records alone: means, error bars, tests, and a refusal to be unfair.

In come `RunRecord`s: directories of scores, and what each run was made with. `fairness` proves that runs differ in the
declared factors only, or names every other difference and makes no table. `table` puts items, checkpoints, shots and
seeds together to cells; `significance` says which differences are more than luck, and `notes` in words what must be
known to read them. `items` is what is behind the numbers: each item, and where rows part. `formats` and `plots` write
the report, `paper` sets a paper's own table beside it. `tokenizers` is the table of what tokenizers do with a corpus,
for which no model is trained.

What must hold: no number is typed or rounded before the end, and every mark has the test it comes from beside it. The
room knows no stage and starts nothing, so that a report can be made of artefacts from anywhere.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.reporting.significance.paired import paired_test

__all__ = ["paired_test"]


def __getattr__(name: str) -> object:
    """Import the promised names when they are first used: they need numpy and scipy."""
    if name in __all__:
        from paribus.reporting.significance import paired as significance

        return getattr(significance, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
