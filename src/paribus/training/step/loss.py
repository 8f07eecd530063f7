"""The loss of a language model, as the module that devices, DDP, FSDP and compilation wrap."""

from typing import Any

import torch

from paribus.modeling.decoder import decoder_parts
from paribus.training.step.cross_entropy import summed_cross_entropy


class SummedLoss(torch.nn.Module):
    """Sum of the cross-entropies (nats) of the tokens that `model` should predict; logits are never materialized.

    Tokens attend to all before them in their row; if `document_end`, the end-of-document token, is given, only to those
    of their own document.
    """

    def __init__(self, model: Any, document_end: int | None = None, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model, self.document_end, self.label_smoothing = model, document_end, label_smoothing

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum, float32 scalar, of predicting `targets`, -1 where there is none, from `inputs`; int64 (rows, L).

        Inputs that are -1 stand after the end of a row, where nothing is predicted.
        """
        mask = None if self.document_end is None else document_attention(inputs, self.document_end)
        decoder, output = decoder_parts(self.model)
        hidden = decoder(input_ids=inputs.clamp(min=0), attention_mask=mask, use_cache=False).last_hidden_state
        return summed_cross_entropy(hidden.flatten(0, 1), output, targets.flatten(), self.label_smoothing)


class SummedPairLoss(torch.nn.Module):
    """As `SummedLoss`, of an encoder-decoder that predicts targets given sources.

    A source is read whole and without its padding. A target is predicted from the token that targets begin with and its
    own tokens but the last.
    """

    def __init__(self, model: Any, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing

    def forward(self, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum, float32 scalar, of `targets` (rows, T) given `sources` (rows, S); int64, -1 is padding."""
        begin = targets.new_full((len(targets), 1), self.model.config.decoder_start_token_id)
        hidden = self.model.model(
            input_ids=sources.clamp(min=0),
            attention_mask=sources >= 0,
            decoder_input_ids=torch.cat([begin, targets[:, :-1].clamp(min=0)], dim=1),
            use_cache=False,
        ).last_hidden_state
        output = self.model.lm_head.weight
        return summed_cross_entropy(hidden.flatten(0, 1), output, targets.flatten(), self.label_smoothing)


def make_loss(model: Any, document_end: int | None, label_smoothing: float) -> SummedLoss | SummedPairLoss:
    """The loss of a transformers model of a known family; `document_end` as `SummedLoss` takes it."""
    if model.config.is_encoder_decoder:
        return SummedPairLoss(model, label_smoothing)
    return SummedLoss(model, document_end, label_smoothing)


def document_attention(inputs: torch.Tensor, eos_id: int) -> torch.Tensor:
    """The mask of tokens that attend to those of their own document only, bool (rows, 1, L, L), true where they do.

    `inputs` (rows, L) are token ids; a document ends with the end-of-document token `eos_id`, which belongs to it.
    transformers hands a mask of four dimensions to attention as it is, so it must be causal itself. Padding is a
    document a token. Every token attends to itself at least, so no row of the softmax is empty.
    """
    ends = inputs == eos_id
    document = ends.cumsum(dim=1) - ends.long()
    same = document[:, :, None] == document[:, None, :]
    return same.tril()[:, None]
