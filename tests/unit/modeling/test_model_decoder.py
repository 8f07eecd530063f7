"""The parts of a causal language model that the loss and the scores are computed from."""

from typing import Any

import pytest
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM, MarianConfig, MarianModel

from paribus.errors import ConfigurationError
from paribus.modeling.decoder import decoder_parts

SHAPE = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("family", "config"), [(LlamaForCausalLM, LlamaConfig), (GPTNeoXForCausalLM, GPTNeoXConfig)])
@torch.no_grad()
def test_hidden_states_times_the_output_weight_are_the_logits(family: Any, config: Any, tied: bool) -> None:
    model = family(config(**SHAPE, tie_word_embeddings=tied)).eval()
    tokens = torch.arange(10).unsqueeze(0)
    base, weight = decoder_parts(model)
    hidden = base(input_ids=tokens, use_cache=False).last_hidden_state
    torch.testing.assert_close(hidden @ weight.T, model(tokens).logits)
    assert weight is model.get_output_embeddings().weight
    assert (weight is model.get_input_embeddings().weight) == tied


def test_a_model_that_is_no_causal_language_model_is_refused_by_its_type() -> None:
    with torch.device("meta"):
        model = MarianModel(MarianConfig())
    with pytest.raises(ConfigurationError, match="model_type 'marian' is no causal language model"):
        decoder_parts(model)
