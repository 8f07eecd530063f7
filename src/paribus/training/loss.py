"""The loss of a causal language model, as the module that devices, DDP, FSDP and compilation wrap."""

from typing import Any

import torch
from torch.nn import LinearCrossEntropyOptions
from torch.nn.functional import linear_cross_entropy

from paribus.modeling.decoder import decoder_parts
from paribus.ordering.packing.contexts import NO_TARGET
from paribus.training.attention import document_attention

TOKENS_AT_ONCE = 1024
"""Tokens whose logits exist at the same time: a vocabulary of 128K needs 0.5 GiB for them in float32."""


class SummedLoss(torch.nn.Module):
    """Sum of the cross-entropies (nats) of the tokens that `model` should predict; logits are never materialized.

    Tokens attend to all before them in their row; if `document_end`, the end-of-document token, is given, only to those
    of their own document.
    """

    def __init__(self, model: Any, document_end: int | None = None) -> None:
        super().__init__()
        self.model, self.document_end = model, document_end

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum, float32 scalar, of predicting `targets`, -1 where there is none, from `inputs`; int64 (rows, L)."""
        mask = None if self.document_end is None else document_attention(inputs, self.document_end)
        decoder, output = decoder_parts(self.model)
        hidden = decoder(input_ids=inputs, attention_mask=mask, use_cache=False).last_hidden_state
        return summed_cross_entropy(hidden.flatten(0, 1), output, targets.flatten())


def summed_cross_entropy(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sum over `targets` (n,), -1 where there is none, of the cross-entropy of `hidden` (n, width) times `output`.

    `output` is the output matrix (vocabulary, width). Gradients are those of the whole logits, accumulated in float32
    over chunks of `TOKENS_AT_ONCE`. Under autocast the products are in its type.
    """
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        hidden, output = (tensor.to(torch.get_autocast_dtype(kind)) for tensor in (hidden, output))
    options = LinearCrossEntropyOptions(batch_chunk_size=TOKENS_AT_ONCE, acc_policy="accurate")
    with torch.autocast(kind, enabled=False):
        loss = linear_cross_entropy(hidden, output, targets, reduction="sum", ignore_index=NO_TARGET, options=options)
    return loss.float()
