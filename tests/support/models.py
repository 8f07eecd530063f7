"""A tiny model of each family, and the named sizes."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from paribus.config.groups.model import EncoderDecoderModel, GPTNeoXModel, LlamaModel, ModelConfig

CONF = Path(__file__).resolve().parents[2] / "conf" / "model"
LLAMA = LlamaModel(width=32, layers=2, heads=2, ffn_width=48, context_length=16)
GPT_NEOX = GPTNeoXModel(width=32, layers=2, heads=2, ffn_width=48, context_length=16)
ENCODER_DECODER = EncoderDecoderModel(
    width=32, encoder_layers=2, decoder_layers=3, heads=2, ffn_width=48, context_length=16, positions=24
)
FAMILIES = [LLAMA, GPT_NEOX, ENCODER_DECODER]
_ADAPTER: TypeAdapter[ModelConfig] = TypeAdapter(ModelConfig)
NAMED = {
    path.stem: _ADAPTER.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    for path in sorted(CONF.glob("*.yaml"))
}


def family(model: Any) -> str:
    """The name of a tiny model in test ids."""
    return model.kind if isinstance(model, LlamaModel | GPTNeoXModel | EncoderDecoderModel) else str(model)
