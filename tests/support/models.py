"""A tiny model of each family, and the named sizes."""

from pathlib import Path
from typing import Any

from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel
from paribus.modeling.sizes import named_sizes

CONF = Path(__file__).resolve().parents[2] / "conf" / "model"
LLAMA = LlamaModel(width=32, layers=2, heads=2, ffn_width=48, context_length=16)
GPT_NEOX = GPTNeoXModel(width=32, layers=2, heads=2, ffn_width=48, context_length=16)
ENCODER_DECODER = EncoderDecoderModel(
    width=32, encoder_layers=2, decoder_layers=3, heads=2, ffn_width=48, context_length=16, positions=24
)
FAMILIES = [LLAMA, GPT_NEOX, ENCODER_DECODER]
NAMED = named_sizes(CONF)


def family(model: Any) -> str:
    """The name of a tiny model in test ids."""
    return model.kind if isinstance(model, LlamaModel | GPTNeoXModel | EncoderDecoderModel) else str(model)
