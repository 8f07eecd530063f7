"""Group `model`: architecture and size."""

from typing import Literal

from paribus.config.declare import group, identity
from paribus.config.groups.types import Positive, PositiveFloat


@group
class ModelConfig:
    """A Llama-style decoder; named sizes are the files of this group."""

    kind: Literal["llama"] = identity("llama", doc="Llama architecture (transformers).")
    width: Positive = identity(doc="Hidden size.")
    layers: Positive = identity(doc="Decoder layers.")
    heads: Positive = identity(doc="Attention heads; must divide the width.")
    ffn_width: Positive = identity(doc="Inner width of the SwiGLU feed-forward layer.")
    context_length: Positive = identity(1024, doc="Tokens of a context.")
    tied_embeddings: bool = identity(False, doc="Share input and output embeddings.")
    initializer_range: PositiveFloat = identity(0.02, doc="Standard deviation of the initial weights.")
    rope_theta: PositiveFloat = identity(10_000.0, doc="Base of the rotary position embedding.")
