"""Greedy texts: against transformers' own generation, alone and in batches."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from paribus.config.groups.model import GPTNeoXModel, LlamaModel
from paribus.evaluation.generation import GenerationRequest, Generator
from paribus.evaluation.scoring import Scorer
from support.evaluations import ByteEncoder, tiny_model
from support.transformers_models import in_transformers

TOKENS = 12


class LetterCoder(ByteEncoder):
    """One token a byte; ids decode to letters, so that any of them is text."""

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(ord("a") + identity % 26) for identity in ids)


def prompts(number: int) -> list[str]:
    draw = random.Random(0)
    return ["".join(draw.choices("xyz ", k=draw.randint(1, 40))) for _ in range(number)]


def written(model: Any, texts: Sequence[str], *, batch: int, until: tuple[str, ...] = (), tokens: int = TOKENS) -> Any:
    generator = Generator(Scorer(model, batch * 64), LetterCoder())
    return generator.write([GenerationRequest(text, until, tokens) for text in texts])


@pytest.mark.parametrize("family", [LlamaModel, GPTNeoXModel])
def test_texts_are_those_of_transformers_generate_whatever_the_batch(family: Any) -> None:
    model, coder, texts = tiny_model(257, 64, family=family), LetterCoder(), prompts(9)
    reference, expected = in_transformers(model), []
    for text in texts:
        ids = torch.from_numpy(coder.encode(text))[None]
        options = {"max_new_tokens": TOKENS, "do_sample": False, "eos_token_id": coder.eos_id, "pad_token_id": 0}
        new = reference.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, ids.shape[1] :].tolist()
        expected.append(coder.decode([identity for identity in new if identity != coder.eos_id]))
    for batch in (1, 4, 9):
        assert [answer.text for answer in written(model, texts, batch=batch)] == expected


def test_a_text_ends_before_its_first_stop_string() -> None:
    model, texts = tiny_model(257, 64), prompts(6)
    whole = [answer.text for answer in written(model, texts, batch=6)]
    stop = whole[0][3]
    stopped = [answer.text for answer in written(model, texts, batch=6, until=(stop, "not there"))]
    assert stopped == [text.split(stop)[0] for text in whole]
    assert len({len(text) for text in stopped}) > 1


@pytest.mark.parametrize("rows", [1, 5])
def test_a_batch_that_does_not_fit_is_halved_and_writes_the_same(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts, counts = tiny_model(257, 64), prompts(9), list[int]()
    expected = [answer.text for answer in written(model, texts, batch=9)]
    whole = Generator._run

    def short_of_memory(self: Generator, batch: Any) -> list[str]:
        if len(batch._requests) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(self, batch)

    monkeypatch.setattr(Generator, "_run", short_of_memory)
    requests = [GenerationRequest(text, (), TOKENS) for text in texts]
    answers = Generator(Scorer(model, 9 * 64), LetterCoder()).write(requests, counts.append)
    assert [answer.text for answer in answers] == expected
    assert sum(counts) == len(texts) and max(counts) <= rows


def test_a_prompt_too_long_for_the_context_loses_its_beginning_and_says_so() -> None:
    model = tiny_model(257, 64)
    long = "".join(prompts(10))
    (cut,), (end,) = written(model, [long], batch=1), written(model, [long[-(64 - TOKENS) :]], batch=1)
    assert (cut.text, cut.truncated, end.truncated) == (end.text, True, False)
    (half,) = written(model, [long], batch=1, tokens=1_000)
    assert len(half.text) == 32
