"""Document orders and the contexts cut out of them.

The promised name loads on first use, so that importing a module of the package costs no more than that module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.ordering.orders.in_context import traverse

__all__ = ["traverse"]


def __getattr__(name: str) -> Any:
    if name == "traverse":
        from paribus.ordering.orders.in_context import traverse

        return traverse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
