"""Loss of a language model, as the module that devices, DDP, FSDP and compilation wrap, and its optimizer.

Cross-entropy is of hidden states times an output matrix, without the logits of all tokens at once. PyTorch has this too
(`torch.nn.functional.linear_cross_entropy`), but sums losses and gradients of bfloat16 products in bfloat16: a sum of
thousands of nats is then a multiple of 256. Here all sums are in float32.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch._dynamo.config
from torch.autograd.function import once_differentiable

from paribus.config.groups.training import TrainingConfig
from paribus.modeling.decoder import Decoder, Documents, Mask
from paribus.modeling.memory import LOSS_TOKENS, flash_takes
from paribus.modeling.models import is_encoder_decoder, stacked_layers
from paribus.ordering.packing import NO_TARGET


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
        """Bounds of documents for flash attention (GPU, bfloat16, fitting heads), else a mask; None without an end."""
        if self.document_end is None:
            return None
        half = inputs.device.type == "cuda" and self.model.computes_in == torch.bfloat16
        if half and flash_takes(self.model.architecture.head_width):
            return document_bounds(inputs, self.document_end)
        return document_attention(inputs, self.document_end)


class SummedPairLoss(torch.nn.Module):
    """Summed loss of an encoder-decoder that predicts targets given sources.

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
    """Begins of the documents of `inputs` (rows, L); every row begins one.

    Layers are compiled for any number of documents from the start: else they would be for that of a process's first
    micro-batch, and again for the second, and a resumed training has another first one.
    """
    begins = torch.ones_like(inputs, dtype=torch.bool)
    begins[:, 1:] = (inputs[:, 1:] if end.begins else inputs[:, :-1]) == end.token
    starts = begins.flatten().nonzero().flatten()
    bounds = torch.cat([starts, starts.new_tensor([inputs.numel()])]).int()
    torch._dynamo.maybe_mark_dynamic(bounds, 0)
    return Documents(bounds, inputs.shape[1])


LossAndDifference = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Function from logits (n, vocabulary) and targets (n,) to the summed loss in float32 and its gradient by the logits,
in their type: probabilities minus the targets. Logits may be overwritten."""


def summed_cross_entropy(
    hidden: torch.Tensor,
    output: torch.Tensor,
    targets: torch.Tensor,
    label_smoothing: float = 0.0,
    of_logits: LossAndDifference | None = None,
) -> torch.Tensor:
    """Sum over `targets` (n,), -1 where there is none, of the cross-entropy of `hidden` (n, width) times `output`.

    `output` is the output matrix (vocabulary, width); the sum is a float32 scalar, in nats. Products are in the type of
    `hidden`. Gradients are computed with the loss, so there can be one backward pass.

    With `label_smoothing` ε, a share of ε of each target is spread evenly over the vocabulary (Szegedy et al. 2016,
    section 7). `of_logits` is `loss_and_difference`, or `fused_loss_and_difference` compiled.
    """
    function = of_logits or loss_and_difference
    loss: torch.Tensor = _SummedCrossEntropy.apply(hidden, output, targets, function)  # type: ignore[no-untyped-call]
    return loss + label_smoothing * _above_mean(hidden, output, targets) if label_smoothing else loss


class _SummedCrossEntropy(torch.autograd.Function):
    """The loss, and in the same pass over chunks of tokens its gradients."""

    @staticmethod
    def forward(
        context: Any, hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor, of_logits: LossAndDifference
    ) -> torch.Tensor:
        matrix, total = output.to(hidden.dtype), torch.zeros((), device=hidden.device)
        of_hidden, of_output = torch.empty_like(hidden), torch.zeros_like(output, dtype=torch.float32)
        at_once = LOSS_TOKENS["gpu" if hidden.is_cuda else "cpu"]
        for start in range(0, len(targets), at_once):
            part = slice(start, start + at_once)
            states = hidden[part]
            loss, difference = of_logits(states @ matrix.T, targets[part])
            total += loss
            torch.mm(difference, matrix, out=of_hidden[part])
            _add_product(of_output, difference, states)
        context.save_for_backward(of_hidden, of_output.to(output.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        of_hidden, of_output = context.saved_tensors
        return of_hidden.mul_(gradient), of_output.mul_(gradient), None, None


def loss_and_difference(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A `LossAndDifference` that overwrites logits in float32, for what is not compiled."""
    wide = logits.float()
    counted, chosen = (targets != NO_TARGET)[:, None], targets.clamp(min=0)[:, None]
    normalizers = wide.logsumexp(dim=1, keepdim=True)
    loss = ((normalizers - wide.gather(1, chosen)) * counted).sum()
    probabilities = wide.sub_(normalizers).exp_()
    probabilities.scatter_add_(1, chosen, torch.full_like(chosen, -1, dtype=wide.dtype))
    return loss, probabilities.mul_(counted).to(logits.dtype)


def fused_loss_and_difference(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and difference without steps in memory, for the compiler: logits are read twice, differences written."""
    wide = logits.float()
    counted, chosen = (targets != NO_TARGET)[:, None], targets.clamp(min=0)[:, None]
    normalizers = wide.logsumexp(dim=1, keepdim=True)
    loss = ((normalizers - wide.gather(1, chosen)) * counted).sum()
    is_target = torch.arange(wide.shape[1], device=wide.device)[None] == chosen
    difference = ((wide - normalizers).exp() - is_target.float()) * counted
    return loss, difference.to(logits.dtype)


def _add_product(total: torch.Tensor, difference: torch.Tensor, states: torch.Tensor) -> None:
    """Add differenceᵀ · states to a float32 `total`; a GPU adds as it multiplies, without rounding the product."""
    if difference.dtype == total.dtype:
        total.addmm_(difference.T, states)
    elif total.is_cuda:
        torch.addmm(total, difference.T, states, out_dtype=total.dtype, out=total)
    else:
        total += difference.T @ states


def _above_mean(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sum over targets of their logit minus the mean of all logits, in float32.

    Times ε it is what smoothing adds to the cross-entropy, since ln Σ exp of the logits is part of both its terms.
    """
    matrix = output.float()
    # Not by indexing: threads of a CPU would add up its gradient in whatever order they come.
    of_targets = torch.nn.functional.embedding(targets.clamp(min=0), matrix)
    directions = of_targets - matrix.mean(dim=0)
    above = (hidden.float() * directions).sum(dim=1)
    return above.masked_fill(targets == NO_TARGET, 0.0).sum()


def make_optimizer(model: torch.nn.Module, training: TrainingConfig) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019, algorithm 2); the learning rate is set before each step.

    It leaves out constants, such as a table of positions.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": training.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = (training.beta1, training.beta2)
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=betas, eps=training.epsilon, fused=True)
