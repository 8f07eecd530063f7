"""Document orders and the contexts cut out of them."""

from paribus.ordering.orders.in_context import traverse

__all__ = ["traverse"]
