"""Groups `model` and `start`, and block `seeds`: what training begins with."""

from typing import Literal

from paribus.config.fields import (
    NonNegative,
    PathText,
    Positive,
    PositiveFloat,
    Probability,
    RunId,
    Share,
    config_class,
    execution,
    identity,
)
from paribus.config.units import Count, Size

Part = Literal["weights", "order", "contexts", "dropout"]
_OTHERWISE = "; null is `seed`."


@config_class
class ModelFamily:
    """Fields of every family; named sizes are the files of this group."""

    kind: str = identity(doc="Which one.")
    width: Positive = identity(doc="Hidden size.")
    heads: Positive = identity(doc="Attention heads; must divide the width.")
    ffn_width: Positive = identity(doc="Inner width of the feed-forward layers.")
    context_length: NonNegative = identity(
        1024,
        doc="Tokens of a context; with encoder_decoder, of a source and of a target at most. 0: as context_bytes says.",
    )
    context_bytes: Size | None = identity(
        None,
        doc="Bytes of source text a context, with context_length=0: as many tokens, a multiple of 8, as come nearest "
        "to it in the mean of the training split.",
    )
    initializer_range: PositiveFloat = identity(
        0.02, doc="Standard deviation of the initial weights where initialization=normal or depth_scaled."
    )
    match: Literal["non_embedding", "total"] = identity(
        "non_embedding",
        doc="What models of different vocabulary sizes have in common: the shape as written and with it the "
        "non-embedding parameters, or the total, for which ffn_width is changed to the nearest multiple of 8.",
    )
    reference_vocab_size: Positive = identity(
        32_000, doc="With match=total: the vocabulary size at which the shape as written has the total to match."
    )


@config_class
class DecoderFamily(ModelFamily):
    """Fields of every causal language model."""

    layers: Positive = identity(doc="Decoder layers.")
    tied_embeddings: bool = identity(False, doc="Share input and output embeddings.")
    rope_theta: PositiveFloat = identity(10_000.0, doc="Base of the rotary position embedding.")
    initialization: Literal["normal", "depth_scaled", "small_init"] = identity(
        "normal",
        doc="Of matrices: N(0, initializer_range²); depth_scaled divides those that write to the residual stream by "
        "√(2 layers) (GPT-2); small_init takes 2 / (5 width) as the variance, and 2 / (layers √width) as the standard "
        "deviation of those (GPT-NeoX, arXiv 2204.06745).",
    )


@config_class
class LlamaModel(DecoderFamily):
    """A Llama decoder: SwiGLU, RMSNorm before each block, rotary positions, no biases."""

    kind: Literal["llama"] = identity("llama", doc="Llama (transformers).")


@config_class
class GPTNeoXModel(DecoderFamily):
    """A GPT-NeoX decoder as Pythia has it: GELU, LayerNorm, biases, partly rotary positions, parallel residual."""

    kind: Literal["gpt_neox"] = identity("gpt_neox", doc="GPT-NeoX (transformers).")
    rotary_fraction: Share = identity(0.25, doc="Share of each head that is rotated (Pythia: 0.25).")
    parallel_residual: bool = identity(True, doc="Attention and feed-forward layer read the same input and are added.")


@config_class
class EncoderDecoderModel(ModelFamily):
    """The Transformer of Vaswani et al. 2017: LayerNorm after each block, sinusoidal positions, shared embeddings."""

    kind: Literal["encoder_decoder"] = identity("encoder_decoder", doc="Transformer for translation (Marian classes).")
    encoder_layers: Positive = identity(doc="Encoder layers.")
    decoder_layers: Positive = identity(doc="Decoder layers.")
    positions: Positive = identity(1024, doc="Rows of the table of positions; no source or target may be longer.")
    activation: Literal["relu", "gelu"] = identity("relu", doc="Of the feed-forward layers.")
    dropout: Probability = identity(
        0.1, doc="Of embeddings and of each block's output (Ott et al. 2018: 0.3 for English-German, 0.1 for -French)."
    )
    attention_dropout: Probability = identity(0.0, doc="Of the attention weights.")
    initialization: Literal["normal", "xavier"] = identity(
        "xavier",
        doc="xavier: matrices uniform after Glorot and Bengio 2010, embeddings N(0, 1 / width), as fairseq; normal: "
        "all from N(0, initializer_range²).",
    )


DecoderModel = LlamaModel | GPTNeoXModel
ModelConfig = LlamaModel | GPTNeoXModel | EncoderDecoderModel


@config_class
class ScratchStart:
    """Random weights of the run's seed."""

    kind: Literal["scratch"] = identity("scratch", doc="Random weights.")


@config_class
class CheckpointStart:
    """Continual pre-training: the weights of a checkpoint, and the optimizer and steps of its training or afresh.

    What is in the checkpoint's files is the identity, not where they are.
    """

    kind: Literal["checkpoint"] = identity("checkpoint", doc="Weights of a checkpoint.")
    path: PathText | None = execution(
        None, doc="Directory: a checkpoint, an artefact `training`, a run, or a Hugging Face model with safetensors."
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


@config_class
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


@config_class
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
