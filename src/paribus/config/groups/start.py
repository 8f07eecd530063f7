"""Group `start`: what training begins with: random weights, those of a checkpoint, or a shorter training of its own."""

from typing import Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.types import NonNegative, PathText, RunId
from paribus.config.units import Count, Size


@group
class ScratchStart:
    """Random weights of the run's seed."""

    kind: Literal["scratch"] = identity("scratch", doc="Random weights.")


@group
class CheckpointStart:
    """Continual pre-training: the weights of a checkpoint, and the optimizer and steps of its training or afresh.

    What is in the checkpoint's files is the identity, not where they are.
    """

    kind: Literal["checkpoint"] = identity("checkpoint", doc="Weights of a checkpoint.")
    path: PathText | None = execution(
        None,
        doc="Directory: a checkpoint, an artefact `training`, a run, or a Hugging Face model with safetensors.",
    )
    run: RunId | None = execution(None, doc="Id of a run below start.root, or its beginning; instead of start.path.")
    step: NonNegative | None = execution(
        None, doc="Which checkpoint of a run or an artefact, by its step; null is the last."
    )
    root: PathText = execution("paribus_runs", doc="Output root that start.run is looked up in.")
    vocabulary: Literal["same", "added"] = identity(
        "same",
        doc="same: equal tokens at equal ids, whatever the encoder. added: every token of the checkpoint and more; an "
        "added token starts as the mean of those that its bytes were before.",
    )
    optimizer: Literal["fresh", "resumed"] = identity(
        "fresh",
        doc="fresh: weights alone; moments, steps and text begin anew. resumed: the training goes on with its moments "
        "and counts its steps on, so that budget, schedule and place in the text are those of both together.",
    )
    longer_context: bool = identity(
        False, doc="Allow a model.context_length beyond that of the checkpoint (rotary positions it has not seen)."
    )


@group
class ContinuedStart:
    """The run's own training with a smaller budget, in all else the same: it is made first, unless it is there, and
    gone on with, as a resumed one is. Of the amounts the one of the budget's kind is given.
    """

    kind: Literal["continued"] = identity("continued", doc="The run's own training with a smaller budget.")
    tokens: Count | None = identity(
        None, doc="Of budget.tokens, those of the training that is gone on from (papers: 100B of 300B)."
    )
    text: Size | None = identity(None, doc="Of budget.text, the bytes of the training that is gone on from.")
    flops: Count | None = identity(None, doc="Of budget.flops, those of the training that is gone on from.")
    steps: Count | None = identity(None, doc="Of budget.steps, those of the training that is gone on from.")


StartConfig = ScratchStart | CheckpointStart | ContinuedStart
