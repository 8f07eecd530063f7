"""Translations by beam search, against decoding one token at a time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from paribus.evaluation.translation import Translator
from paribus.modeling.models import build_model
from paribus.tokenization import Tokenizer
from support.training_inputs import TRANSLATOR, pair_texts

EOS, LENGTH = 256, 8
MODEL = replace(TRANSLATOR, initialization="normal", initializer_range=0.5)
SOURCES = [source[:length] for length, (source, _) in zip((3, 40, 1, 7, 5, 6, 2, 12), pair_texts(8), strict=True)]


@pytest.fixture(scope="module")
def model() -> Any:
    """A model that ends texts so often that hypotheses of several lengths compete."""
    model = build_model(MODEL, 257, 3, eos_id=EOS).eval()
    model.final_logits_bias[0, EOS] += 6.0
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))


def log_probabilities(model: Any, source: str, written: list[int]) -> torch.Tensor:
    """Of each next token."""
    encoded = [*source.encode()[: LENGTH - 1], EOS]
    with torch.inference_mode():
        logits = model(
            input_ids=torch.tensor([encoded]), decoder_input_ids=torch.tensor([[EOS, *written]]), use_cache=False
        ).logits
    return torch.log_softmax(logits[0, -1].double(), 0)


def greedy(model: Any, source: str) -> list[int]:
    written: list[int] = []
    while len(written) < LENGTH - 1 and EOS not in written:
        written.append(int(log_probabilities(model, source, written).argmax()))
    return written


def beam(model: Any, source: str, beams: int) -> list[int]:
    """The best of the hypotheses that `beams` beams finish, a token at a time."""
    open_, finished = [(0.0, [])], list[tuple[float, list[int]]]()
    for _ in range(LENGTH - 1):
        grown = [
            (weight + float(value), [*written, token])
            for weight, written in open_
            for token, value in enumerate(log_probabilities(model, source, written))
        ]
        best = sorted(grown, reverse=True)[: 2 * beams]
        finished += [(w / len(ids) ** 0.6, ids) for w, ids in best[:beams] if ids[-1] == EOS]
        open_ = [(w, ids) for w, ids in best if ids[-1] != EOS][:beams]
    finished += [(w / len(ids) ** 0.6, ids) for w, ids in open_]
    return max(finished)[1]


@pytest.mark.parametrize(("beams", "batch"), [(1, 8), (1, 3), (4, 8), (4, 1)])
def test_translations_are_those_of_decoding_a_source_at_a_time(
    model: Any, tokenizer: Tokenizer, beams: int, batch: int
) -> None:
    found = Translator(model, tokenizer, LENGTH, 64 * batch, beams=beams).translate(SOURCES)
    expected = [greedy(model, source) if beams == 1 else beam(model, source, beams) for source in SOURCES]
    assert found == [tokenizer.decode(np.array([i for i in ids if i != EOS])) for ids in expected]


def test_a_step_computes_the_last_token_of_each_hypothesis_alone(model: Any, tokenizer: Tokenizer) -> None:
    widths = list[int]()

    def look(module: Any, args: Any, given: dict[str, Any]) -> None:
        widths.append(given["input_ids"].shape[1])

    hook = model.get_decoder().register_forward_pre_hook(look, with_kwargs=True)
    Translator(model, tokenizer, LENGTH).translate(SOURCES[:2])
    hook.remove()
    assert set(widths) == {1} and len(widths) > 1
