"""Memory that training a causal language model takes, by formula and without building it.

The most over the phases of a step, since what one phase holds another has freed: the loss, where all activations and
the logits of a chunk are there; the backward pass, at its start and at its end; the optimizer. Activations are listed
tensor by tensor as autograd saves them for the layers of `decoder` under scaled dot-product attention; exact for layers
that are not compiled, and within some percent for those that are. `paribus plan` uses this, so nothing heavy may be
imported here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from paribus.config.groups.model import DecoderModel, EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.modeling.parameters import (
    OPTIMIZER_MOMENTS,
    parameter_count,
    resolve_model,
    rotated_width,
    stack_parameters,
)

LOSS_TOKENS: Mapping[str, int] = MappingProxyType({"cpu": 1024, "gpu": 4096})
"""Tokens whose logits exist at the same time: few enough for a CPU's caches, many enough to occupy a GPU."""
BATCHES = 4
"""Batches that exist at once: the current one, two that are ready, and one that is being read."""


@dataclass(frozen=True)
class TrainingSetting:
    """How a model is trained, as far as one process' memory depends on it."""

    micro_batch: int
    """Contexts of a forward pass."""
    share: int
    """Contexts of a step."""
    precision: Literal["fp32", "bf16"] = "fp32"
    gpu: bool = False
    documents: bool = False
    """True if a mask keeps attention within documents."""
    activation_checkpointing: bool = False
    processes: int = 1
    parallel: Literal["ddp", "fsdp"] = "ddp"
    shard_processes: int = 0
    """Processes that divide weights among them; 0 for all."""
    reshard: bool = True
    """True if a layer's gathered weights are let go after its forward pass."""

    @property
    def sharded(self) -> bool:
        """True if processes divide weights, gradients and moments."""
        return self.parallel == "fsdp" and self.processes > 1

    @property
    def shards(self) -> int:
        """Parts that these are divided into."""
        return (self.shard_processes or self.processes) if self.sharded else 1

    @property
    def number(self) -> int:
        """Bytes of a number in activations and the residual stream."""
        return FLOAT32 if self.precision == "fp32" else BFLOAT16


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of one process, beside those of the interpreter, its libraries and the device's context."""

    weights: int
    moments: int
    gradients: int
    activations: int
    """Bytes that the forward pass of a micro-batch keeps for its backward pass."""
    phases: Mapping[str, int]
    """Most bytes held in `loss`, `backward`, `end of backward` and `optimizer`, weights and all included."""
    batches: int
    checkpoint: int
    """The copy on the host of the weights and moments that this process writes into a checkpoint."""
    gpu: bool

    @property
    def device(self) -> int:
        """Most bytes on the device; on a CPU that is all."""
        return max(self.phases.values()) + (0 if self.gpu else self.host)

    @property
    def host(self) -> int:
        """Most bytes on the host, of what is not counted in a phase."""
        return self.checkpoint + self.batches


def training_setting(
    training: TrainingConfig, precision: str, processes: int, *, gpu: bool, documents: bool
) -> TrainingSetting:
    """Fields of a configuration that decide the memory of one of `processes` processes.

    Whether layers are compiled does not: they keep the same.
    """
    share = max(1, training.global_batch // processes)
    return TrainingSetting(
        micro_batch=min(training.micro_batch or share, share),
        share=share,
        precision="bf16" if precision == "bf16" else "fp32",
        gpu=gpu,
        documents=documents,
        activation_checkpointing=training.activation_checkpointing,
        processes=processes,
        parallel=training.parallel,
        shard_processes=training.shard_processes,
        reshard=training.reshard_after_forward,
    )


def training_memory(model: ModelConfig, vocab_size: int, how: TrainingSetting) -> TrainingMemory | None:
    """Memory that training takes; None for encoder_decoder, for which there is no formula."""
    resolved = resolve_model(model, vocab_size)
    if isinstance(resolved, EncoderDecoderModel):
        return None
    parts = _Parts(resolved, vocab_size, how)
    parameters = parameter_count(resolved, vocab_size)
    weights = FLOAT32 * parameters // how.shards
    state = (1 + OPTIMIZER_MOMENTS) * FLOAT32 * parameters // how.shards
    before = state + (weights if parts.gradients_stay else 0)
    return TrainingMemory(
        weights=weights,
        moments=OPTIMIZER_MOMENTS * weights,
        gradients=weights,
        activations=parts.activations,
        phases={
            "loss": before + parts.loss,
            "backward": before + parts.backward,
            "end of backward": state + parts.end_of_backward(weights),
            "optimizer": state + weights,
        },
        batches=BATCHES * 2 * INT64 * how.share * resolved.context_length,
        checkpoint=(1 + OPTIMIZER_MOMENTS) * weights,
        gpu=how.gpu,
    )


class _Parts:
    """Bytes beside weights, moments and the gradients of earlier micro-batches."""

    def __init__(self, model: DecoderModel, vocab_size: int, how: TrainingSetting) -> None:
        self.model, self.how, self.vocab_size = model, how, vocab_size
        if isinstance(model, LlamaModel):
            self.saved = _llama_bytes(model, how.number)
        else:
            self.saved = _gpt_neox_bytes(model, how.number)
        self.tokens = how.micro_batch * model.context_length
        self.number = how.number
        self.table = vocab_size * model.width
        """Elements of a matrix with a row for each token."""
        self.layer_parameters = stack_parameters(model) // model.layers

    @property
    def gradients_stay(self) -> bool:
        """True if gradients exist while a forward pass runs: those of earlier micro-batches, or DDP's buckets."""
        ddp = self.how.processes > 1 and not self.how.sharded
        return ddp or self.how.micro_batch < self.how.share

    @property
    def masked(self) -> bool:
        """True if a mask of all pairs of tokens keeps attention within documents."""
        unmasked = self.how.gpu and self.number == BFLOAT16 and flash_takes(self.model.width // self.model.heads)
        return self.how.documents and not unmasked

    @property
    def layer(self) -> int:
        """Bytes saved in one layer: activations, cast weights, and the mask as numbers to add.

        Sharded weights arrive cast and are let go.
        """
        casts = BFLOAT16 * cast_elements(self.model) if self.number == BFLOAT16 and not self.how.sharded else 0
        mask = self.number * self.tokens * self.model.context_length if self.masked else 0
        return self.tokens * self.saved.layer + casts + mask

    @property
    def activations(self) -> int:
        """Bytes saved in all layers, and beside them: token ids, the norm at the end, the mask itself, and rotations,
        which layers and rows share.
        """
        checkpointed = self.how.activation_checkpointing
        layer = self.tokens * self.saved.layer_input if checkpointed else self.layer
        mask = BOOL * self.tokens * self.model.context_length if self.masked else 0
        rotated = (
            rotated_width(self.model) if isinstance(self.model, GPTNeoXModel) else self.model.width // self.model.heads
        )
        rotations = self.model.context_length * rotated * FLOAT32
        # An RMSNorm has a weight a column, a LayerNorm a bias too.
        norm = self.model.width * (1 if isinstance(self.model, LlamaModel) else 2)
        norm *= BFLOAT16 if self.number == BFLOAT16 else 0
        return self.model.layers * layer + self.tokens * (self.saved.final + INT64) + rotations + norm + mask

    @property
    def loss(self) -> int:
        """Bytes of all activations, hidden states, their gradients and those of the output matrix, and a chunk.

        The loss computes gradients in the forward pass, from a chunk's logits and the exponentials of them. In bfloat16
        the output matrix and a chunk's share of its gradient are there too.
        """
        chunk = min(self.tokens, LOSS_TOKENS["gpu" if self.how.gpu else "cpu"])
        hidden = 2 * self.number * self.tokens * self.model.width
        matrices = FLOAT32 * self.table + (2 * BFLOAT16 * self.table if self.number == BFLOAT16 else 0)
        return self.activations + hidden + matrices + chunk * 2 * FLOAT32 * self.vocab_size + self._gathered()

    @property
    def backward(self) -> int:
        """Bytes at the norm after the last layer or in the last layer, whichever holds more.

        The gradient of the output matrix is kept unless it could be added to one that is there. With activation
        checkpointing the layer is computed again.
        """
        saved, tokens = self.saved, self.tokens
        recomputed = self.layer - tokens * saved.layer_input if self.how.activation_checkpointing else 0
        inside = recomputed + tokens * (saved.layer_backward - saved.final)
        output = 0 if self.gradients_stay and not self.model.tied_embeddings else FLOAT32 * self.table
        return self.activations + max(tokens * saved.final_backward, inside) + output + self._gathered(backward=True)

    def end_of_backward(self, gradients: int) -> int:
        """Bytes in the first layer with the gradients of all others, or at the embedding, whose gradient is whole."""
        table = FLOAT32 * self.table
        missing = 0 if self.gradients_stay else FLOAT32 * self.layer_parameters
        missing += 0 if self.gradients_stay or self.model.tied_embeddings else table
        first = gradients - missing + self.layer + self.tokens * self.saved.layer_backward
        added = table * ((1 if self.gradients_stay else 0) + (1 if self.model.tied_embeddings else 0))
        embedding = gradients + added + self.tokens * self.model.width * FLOAT32
        return max(first, embedding) + self._gathered(backward=True)

    def _gathered(self, *, backward: bool = False) -> int:
        """FSDP: vocabulary matrices, the layer that computes and the next one, or all; then gradients to be summed.

        Gradients are summed over processes in float32, in which the matrices of the vocabulary travel too.
        """
        if not self.how.sharded:
            return 0
        tables = self.table * (1 if self.model.tied_embeddings else 2)
        layers = (2 if self.how.reshard else self.model.layers) * self.number * self.layer_parameters
        reduced = (self.number + FLOAT32) * self.layer_parameters if backward else 0
        return FLOAT32 * tables + layers + reduced


FLOAT32, BFLOAT16, INT64, BOOL = 4, 2, 8, 1


@dataclass(frozen=True)
class ActivationBytes:
    """Bytes a token, all layers being alike."""

    layer: int
    """Saved in a layer, its input included."""
    layer_input: int
    """Bytes of these that are still saved with activation checkpointing."""
    layer_backward: int
    """More than what a layer saved, at the most that its backward pass holds; the gradient it begins with included."""
    final: int
    """Saved by the norm after the last layer, its input included."""
    final_backward: int
    """More than what is saved, at the most that the backward pass of that norm holds."""


def _llama_bytes(model: LlamaModel, number: int) -> ActivationBytes:
    """An RMSNorm saves its input and 1 / root mean square, and is itself saved.

    Attention saves queries, keys and values, its output and the logarithms of the softmax' sums; SwiGLU both factors
    and their product. Its backward pass holds most where the product is taken apart: the incoming gradient, those of
    the product and of both factors, and one of these in the making, the product being freed.
    """
    w, f, sums = model.width, model.ffn_width, FLOAT32 * model.heads
    norm = number * 2 * w + FLOAT32
    layer = 2 * norm + number * (4 * w + 3 * f) + sums
    final = number * w + FLOAT32
    return ActivationBytes(layer, number * w, number * (w + 3 * f), final, number * 2 * w)


def _gpt_neox_bytes(model: GPTNeoXModel, number: int) -> ActivationBytes:
    """A LayerNorm saves its input, mean and 1 / deviation, and is itself saved.

    Attention saves as Llama's does; the feed-forward layer its inside before and after GELU. Without parallel residual,
    both norms have their own input.
    """
    w, f, sums = model.width, model.ffn_width, FLOAT32 * model.heads
    inputs = 1 if model.parallel_residual else 2
    layer = number * ((inputs + 2 + 3 + 1) * w + 2 * f + 4) + sums
    return ActivationBytes(layer, number * w, number * (w + f), number * (w + 2), number * 2 * w)


def flash_takes(head_width: int) -> bool:
    """True if PyTorch's flash attention of documents on a GPU has a kernel for heads of that width."""
    return head_width % 8 == 0 and head_width <= 256


def cast_elements(model: DecoderModel) -> int:
    """Elements of a layer's weights that the backward pass needs in bfloat16: all but the matrices' biases."""
    matrices, norms = (3, 2) if isinstance(model, LlamaModel) else (2, 4)
    return 4 * model.width**2 + matrices * model.width * model.ffn_width + norms * model.width
