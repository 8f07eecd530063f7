"""Block `seeds`: the random numbers of single parts of a run."""

from typing import Literal

from paribus.config.declare import group, identity
from paribus.config.groups.types import NonNegative

Part = Literal["weights", "order", "contexts", "dropout"]
_OTHERWISE = "; null is `seed`."


@group
class SeedsConfig:
    """Which part of a difference comes from where: one part varies while the others keep theirs."""

    weights: NonNegative | None = identity(None, doc="Initial weights" + _OTHERWISE)
    order: NonNegative | None = identity(
        None, doc="Order of the documents: its shuffle and the traversal's random jumps" + _OTHERWISE
    )
    contexts: NonNegative | None = identity(
        None, doc="Shuffle of the contexts, and of the examples of fine-tuning" + _OTHERWISE
    )
    dropout: NonNegative | None = identity(None, doc="What dropout leaves out" + _OTHERWISE)
