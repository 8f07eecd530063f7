"""A family other than Llama through the stage that trains it and the code that scores it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from paribus.config.groups.model import GPTNeoXModel
from paribus.config.groups.ordering import ConcatenatePacking
from paribus.evaluation.pairs import Pair
from paribus.evaluation.scoring import Scorer
from paribus.modeling.models import load_model
from paribus.modeling.parameters import parameter_count, training_flops
from support.evaluations import brute_force
from support.training_inputs import BUDGET, config, execute, write_inputs

MODEL = GPTNeoXModel(width=16, layers=2, heads=2, ffn_width=24, context_length=16, initialization="small_init")


def test_a_gpt_neox_is_trained_within_documents_kept_and_scored(tmp_path: Path) -> None:
    run = replace(config(packing=ConcatenatePacking(attention="document")), model=MODEL)
    result = execute(tmp_path, "run", write_inputs(tmp_path), run)
    assert result["parameters"] == parameter_count(MODEL, 257)
    assert result["flops"] == training_flops(MODEL, 257, BUDGET.tokens)
    assert result["final_loss"] < np.log(257) - 0.5
    trained = load_model(tmp_path / "run" / "output" / "step_00000014").eval()
    assert trained.architecture.kind == "gpt_neox"
    context, choices = np.array(list(b"all else")), [list(b" being"), list(b" equal"), list(b" q")]
    scores = Scorer(trained, batch_tokens=64).score([Pair(context, np.array(choice)) for choice in choices])
    expected = [brute_force(trained, context.tolist(), choice)[0] for choice in choices]
    np.testing.assert_allclose(scores.log_probability, expected, atol=1e-4)
