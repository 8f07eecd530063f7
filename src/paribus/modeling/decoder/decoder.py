"""A causal language model."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from paribus.modeling.decoder.architecture import Architecture
from paribus.modeling.decoder.attention import Mask
from paribus.modeling.decoder.cache import Cache
from paribus.modeling.decoder.layers import GPTNeoXLayer, LlamaLayer
from paribus.modeling.decoder.modules import Embedding, LayerNorm, Linear, RMSNorm
from paribus.modeling.decoder.rotation import rotation_at

VOCABULARY = ("embedding.weight", "output.weight")
"""Parameters with a row for each token."""


class Decoder(nn.Module):
    """A decoder whose weights are float32 and, when it is made, of any value."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.computes_in = torch.float32
        """The type of matrix products, activations and the residual stream."""
        self.activation_checkpointing = False
        """Whether layers keep their input only and are computed again in the backward pass."""
        layer = LlamaLayer if architecture.kind == "llama" else GPTNeoXLayer
        norm = RMSNorm if architecture.kind == "llama" else LayerNorm
        self.embedding = Embedding(architecture.vocab_size, architecture.width)
        self.layers = nn.ModuleList(layer(architecture) for _ in range(architecture.layers))
        self.norm = norm(architecture.width, architecture.norm_epsilon)
        self.output = None if architecture.tied_embeddings else Linear(architecture.width, architecture.vocab_size)

    @property
    def output_weight(self) -> torch.Tensor:
        """(vocabulary size, width): logits are hidden states times its transpose. The embedding where they are tied."""
        return self.embedding.weight if self.output is None else self.output.weight

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor | None = None,
        mask: Mask = None,
        cache: Cache | None = None,
    ) -> torch.Tensor:
        """Hidden states before the output matrix, (rows, length, width) in `computes_in`; `ids`: (rows, length), int64.

        `positions`, int64 (rows or 1, length), are 0, 1, ... unless they are given. With a `cache` the tokens follow
        those that it holds, and it holds them too afterwards; a mask must say what they attend to.
        """
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        rotation = rotation_at(positions, self.architecture.rotated, self.architecture.rope_theta)
        x = self.embedding(ids).to(self.computes_in)
        for number, layer in enumerate(self.layers):
            if self.activation_checkpointing and self.training:
                x = checkpoint(layer, x, rotation, mask, use_reentrant=False)
            else:
                x = layer(x, rotation, mask, cache.past(number) if cache else None)
        if cache:
            cache.length += ids.shape[1]
        hidden: torch.Tensor = self.norm(x)
        return hidden

    def logits(self, ids: torch.Tensor, mask: Mask = None) -> torch.Tensor:
        """Of every token that may follow, (rows, length, vocabulary size); large, so losses and scores do without."""
        hidden: torch.Tensor = self(ids, mask=mask)
        return hidden @ self.output_weight.to(hidden.dtype).T
