"""The families as classes of transformers: a closed registry, by `model.kind` and by the `model_type` of a checkpoint.

transformers takes seconds to import a family, so each is imported when it is asked for.
"""

from typing import Any

from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig

MODEL_TYPES = ("llama", "gpt_neox", "marian")
"""Values of `model_type` in the `config.json` of a checkpoint that `model_class` knows."""


def model_class(model_type: str) -> Any:
    """The transformers class of a `model_type`; KeyError for any other than `MODEL_TYPES`."""
    match model_type:
        case "llama":
            from transformers.models.llama.modeling_llama import LlamaForCausalLM

            return LlamaForCausalLM
        case "gpt_neox":
            from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXForCausalLM

            return GPTNeoXForCausalLM
        case "marian":
            from transformers.models.marian.modeling_marian import MarianMTModel

            return MarianMTModel
    raise KeyError(model_type)


def transformers_config(model: ModelConfig, vocab_size: int, eos_id: int | None = None) -> Any:
    """The transformers configuration; `eos_id`, the end-of-document token, is where generation stops.

    An encoder-decoder's target begins with that token too, as fairseq's does, so it cannot do without (ValueError).
    """
    match model:
        case LlamaModel():
            return _llama(model, vocab_size, eos_id)
        case GPTNeoXModel():
            return _gpt_neox(model, vocab_size, eos_id)
        case EncoderDecoderModel():
            return _marian(model, vocab_size, eos_id)


def _llama(model: LlamaModel, vocab_size: int, eos_id: int | None) -> Any:
    from transformers.models.llama.configuration_llama import LlamaConfig

    return LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=model.width,
        intermediate_size=model.ffn_width,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.heads,
        max_position_embeddings=model.context_length,
        tie_word_embeddings=model.tied_embeddings,
        initializer_range=model.initializer_range,
        rope_parameters={"rope_type": "default", "rope_theta": model.rope_theta},
        attention_dropout=0.0,
        bos_token_id=None,
        eos_token_id=eos_id,
        pad_token_id=None,
        use_cache=False,
        attn_implementation="sdpa",
    )


def _gpt_neox(model: GPTNeoXModel, vocab_size: int, eos_id: int | None) -> Any:
    from transformers.models.gpt_neox.configuration_gpt_neox import GPTNeoXConfig

    return GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=model.width,
        intermediate_size=model.ffn_width,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        max_position_embeddings=model.context_length,
        tie_word_embeddings=model.tied_embeddings,
        initializer_range=model.initializer_range,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": model.rope_theta,
            "partial_rotary_factor": model.rotary_fraction,
        },
        use_parallel_residual=model.parallel_residual,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        bos_token_id=None,
        eos_token_id=eos_id,
        pad_token_id=None,
        use_cache=False,
        attn_implementation="sdpa",
    )


def _marian(model: EncoderDecoderModel, vocab_size: int, eos_id: int | None) -> Any:
    from transformers.models.marian.configuration_marian import MarianConfig

    if eos_id is None:
        raise ValueError("an encoder-decoder needs eos_id, the token its targets begin with")
    return MarianConfig(
        vocab_size=vocab_size,
        d_model=model.width,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        encoder_attention_heads=model.heads,
        decoder_attention_heads=model.heads,
        encoder_ffn_dim=model.ffn_width,
        decoder_ffn_dim=model.ffn_width,
        max_position_embeddings=model.positions,
        activation_function=model.activation,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
        init_std=model.initializer_range,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        decoder_start_token_id=eos_id,
        eos_token_id=eos_id,
        forced_eos_token_id=None,
        # A padding token's embedding would not be trained, and the end-of-document token's must be.
        pad_token_id=None,
        use_cache=False,
        attn_implementation="sdpa",
    )
