"""Tables in the style of a paper, built from records alone: means, error bars, tests, and a refusal to be unfair."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.reporting.significance.items import paired_test as paired_test

__all__ = ["paired_test"]


def __getattr__(name: str) -> object:
    """Import the promised names when they are first used: they need numpy and scipy."""
    if name in __all__:
        from paribus.reporting.significance import items as significance

        return getattr(significance, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
