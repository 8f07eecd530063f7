"""The loss of a language model, as the module that devices, DDP, FSDP and compilation wrap."""

from typing import Any, NamedTuple

import torch
import torch._dynamo.config

from paribus.modeling.decoder import Decoder, Documents, Mask
from paribus.modeling.memory import flash_takes
from paribus.modeling.models import is_encoder_decoder, stacked_layers
from paribus.training.step.cross_entropy import LossAndDifference, fused_loss_and_difference, summed_cross_entropy


class DocumentEnd(NamedTuple):
    """The end-of-document token where attention stays within documents."""

    token: int
    begins: bool = False
    """True if it belongs to the document after it, as where contexts begin with it; else to the one before it."""


class SummedLoss(torch.nn.Module):
    """Sum of the cross-entropies (nats) of the tokens that `model` should predict; logits are never materialized.

    Tokens attend to all before them in their row; if `document_end` is given, only to those of their own document.
    """

    def __init__(self, model: Decoder, document_end: DocumentEnd | None = None, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model, self.document_end, self.label_smoothing = model, document_end, label_smoothing
        self.of_logits: LossAndDifference | None = None

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum, float32 scalar, of predicting `targets`, -1 where there is none, from `inputs`; int64 (rows, L).

        Inputs that are -1 stand after the end of a row, where nothing is predicted.
        """
        hidden = self.model(inputs.clamp(min=0), mask=self._mask(inputs))
        output, flat = self.model.output_weight, hidden.flatten(0, 1)
        return summed_cross_entropy(flat, output, targets.flatten(), self.label_smoothing, self.of_logits)

    def _mask(self, inputs: torch.Tensor) -> Mask:
        """Flash attention knows where documents end, on a GPU in bfloat16 and of heads it has; else a mask says it."""
        if self.document_end is None:
            return None
        half = inputs.device.type == "cuda" and self.model.computes_in == torch.bfloat16
        if half and flash_takes(self.model.architecture.head_width):
            return document_bounds(inputs, self.document_end)
        return document_attention(inputs, self.document_end)


class SummedPairLoss(torch.nn.Module):
    """As `SummedLoss`, of an encoder-decoder that predicts targets given sources.

    A source is read whole and without its padding. A target is predicted from the token that targets begin with and its
    own tokens but the last.
    """

    def __init__(self, model: Any, label_smoothing: float = 0.0, computes_in: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.model, self.label_smoothing, self.computes_in = model, label_smoothing, computes_in
        self.of_logits: LossAndDifference | None = None

    def forward(self, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum, float32 scalar, of `targets` (rows, T) given `sources` (rows, S); int64, -1 is padding."""
        begin = targets.new_full((len(targets), 1), self.model.config.decoder_start_token_id)
        half = self.computes_in != torch.float32
        with torch.autocast(sources.device.type, dtype=torch.bfloat16, enabled=half):
            hidden = self.model.model(
                input_ids=sources.clamp(min=0),
                attention_mask=sources >= 0,
                decoder_input_ids=torch.cat([begin, targets[:, :-1].clamp(min=0)], dim=1),
                use_cache=False,
            ).last_hidden_state
        states = hidden.flatten(0, 1).to(self.computes_in)
        output = self.model.lm_head.weight
        return summed_cross_entropy(states, output, targets.flatten(), self.label_smoothing, self.of_logits)


def make_loss(
    model: Any, document_end: DocumentEnd | None, label_smoothing: float, computes_in: torch.dtype
) -> SummedLoss | SummedPairLoss:
    """The loss of a model, which computes in float32 or bfloat16; `document_end` as `SummedLoss` takes it."""
    if is_encoder_decoder(model):
        return SummedPairLoss(model, label_smoothing, computes_in)
    model.computes_in = computes_in
    return SummedLoss(model, document_end, label_smoothing)


def compile_loss(loss: SummedLoss | SummedPairLoss) -> None:
    """Compile the layers one by one, and what the loss computes of logits.

    Under DDP as everywhere: PyTorch would cut a layer where a bucket of gradients is full, and the kernels of its parts
    round otherwise. DDP sums the gradients of a layer beside the backward pass of the one before anyway.
    """
    torch._dynamo.config.optimize_ddp = False
    for layer in stacked_layers(loss.model):
        layer.compile()
    loss.of_logits = torch.compile(fused_loss_and_difference)


def compile_anew() -> None:
    """Forget what was compiled in this process: the next micro-batch is compiled for its own size.

    After two sizes PyTorch compiles for any, which may round otherwise, and be slower, than what one size alone gets.
    """
    torch.compiler.reset()


def document_attention(inputs: torch.Tensor, end: DocumentEnd) -> torch.Tensor:
    """The mask of tokens that attend to those of their own document only, bool (rows, 1, L, L), true where they do.

    `inputs` (rows, L) are token ids. Padding of end-of-document tokens is a document a token. Every token attends to
    itself at least, so no row of the softmax is empty.
    """
    ends = inputs == end.token
    document = ends.cumsum(dim=1) - (0 if end.begins else ends.long())
    same = document[:, :, None] == document[:, None, :]
    return same.tril()[:, None]


def document_bounds(inputs: torch.Tensor, end: DocumentEnd) -> Documents:
    """Where the documents of `inputs` (rows, L) begin; every row begins one.

    Layers are compiled for any number of them at once: compiled for that of a process's first micro-batch, they would
    be so again for the second, and a training that goes on would have another first one.
    """
    begins = torch.ones_like(inputs, dtype=torch.bool)
    begins[:, 1:] = (inputs[:, 1:] if end.begins else inputs[:, :-1]) == end.token
    starts = begins.flatten().nonzero().flatten()
    bounds = torch.cat([starts, starts.new_tensor([inputs.numel()])]).int()
    torch._dynamo.maybe_mark_dynamic(bounds, 0)
    return Documents(bounds, inputs.shape[1])
