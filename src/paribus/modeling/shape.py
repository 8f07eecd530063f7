"""The parameters of each family's shape as written, by formula; `paribus plan` uses this, so nothing heavy here."""

from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig


def vocabulary_matrices(model: ModelConfig) -> int:
    """Matrices with a row for each token: one where input and output share it, else two."""
    return 1 if isinstance(model, EncoderDecoderModel) or model.tied_embeddings else 2


def stack_parameters(model: ModelConfig) -> int:
    """Everything but the matrices of the vocabulary: layers and what stands between them and the output matrix.

    The table of sinusoidal positions is a constant and no parameter.
    """
    match model:
        case LlamaModel():
            return model.layers * _llama_layer(model) + model.width
        case GPTNeoXModel():
            return model.layers * _gpt_neox_layer(model) + 2 * model.width
        case EncoderDecoderModel():
            return encoder_parameters(model) + decoder_parameters(model)


def encoder_parameters(model: EncoderDecoderModel) -> int:
    """Encoder layers: attention and feed-forward layer with biases, a LayerNorm after each."""
    return model.encoder_layers * (_biased_attention(model.width) + _biased_feed_forward(model) + 4 * model.width)


def decoder_parameters(model: EncoderDecoderModel) -> int:
    """Decoder layers: attention to the target, attention to the source, feed-forward layer, a LayerNorm after each."""
    layer = 2 * _biased_attention(model.width) + _biased_feed_forward(model) + 6 * model.width
    return model.decoder_layers * layer


def source_projections(model: EncoderDecoderModel) -> int:
    """Those decoder parameters a source token is multiplied with: keys and values of the attention to the source."""
    return model.decoder_layers * 2 * (model.width**2 + model.width)


def _llama_layer(model: LlamaModel) -> int:
    """Four attention matrices, three SwiGLU matrices, two RMSNorms."""
    return 4 * model.width**2 + 3 * model.width * model.ffn_width + 2 * model.width


def _gpt_neox_layer(model: GPTNeoXModel) -> int:
    """Attention and feed-forward layer with biases, two LayerNorms."""
    return _biased_attention(model.width) + _biased_feed_forward(model) + 4 * model.width


def _biased_attention(width: int) -> int:
    return 4 * (width**2 + width)


def _biased_feed_forward(model: GPTNeoXModel | EncoderDecoderModel) -> int:
    return 2 * model.width * model.ffn_width + model.ffn_width + model.width
