"""Our decoders as transformers has them."""

import tempfile
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM

from paribus.modeling.models import save_model


def in_transformers(model: Any) -> Any:
    """The class of transformers with the weights of `model`, read from a directory that was written for it."""
    with tempfile.TemporaryDirectory() as directory:
        save_model(model, Path(directory))
        return AutoModelForCausalLM.from_pretrained(directory, attn_implementation="sdpa").eval()
