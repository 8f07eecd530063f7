"""Log-probabilities and greedy texts of a checkpoint beside those of lm-eval's model class `hf`, in float32."""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from acceptance.given import ROOT, Answer, Given
from evaluation import write_checkpoint
from paribus.config.groups.model import LlamaModel
from paribus.evaluation.evaluate import HarnessModel
from paribus.evaluation.generation import GenerationRequest, Generator
from paribus.evaluation.prompts import evaluation_tokenizer
from paribus.evaluation.scoring import Scorer, load_checkpoint_model

LIMIT = 1e-3
"""Of a log-probability, in nats; of texts all must be the same but those that a tie decides."""
SAME_TEXTS = 0.9


def scoring(given: Given) -> Answer:
    """Seconds of both, the largest difference of a score, and the share of texts that are the same."""
    number, tokens, batch = (12, 8, 4) if given.tiny else (400, 64, 64)
    checkpoint = written_checkpoint(given)
    theirs: Any = HFLM(pretrained=str(checkpoint), dtype="float32", device=given.device, batch_size=batch)
    scorer = Scorer(load_checkpoint_model(checkpoint, given.device))
    tokenizer = evaluation_tokenizer(checkpoint / "tokenizer")
    ours, asked = HarnessModel(scorer, tokenizer), requests(number)
    answer, scores = Answer(), {}
    for name, model in (("paribus", ours), ("hf", theirs)):
        model.loglikelihood(asked[:batch], disable_tqdm=True)
        began = time.perf_counter()
        scores[name] = [score for score, _ in model.loglikelihood(asked, disable_tqdm=True)]
        answer.numbers[f"{name} scores s"] = time.perf_counter() - began
    differs = float(np.abs(np.subtract(scores["paribus"], scores["hf"])).max())
    answer.numbers["scores differ by"] = differs
    answer.expect(differs <= LIMIT, f"scores differ by {differs:.2g} nats")

    prompts, began = [request.args[0] for request in asked], time.perf_counter()
    written = Generator(scorer, tokenizer).write([GenerationRequest(prompt, (), tokens) for prompt in prompts])
    answer.numbers["paribus texts s"] = time.perf_counter() - began
    options = {"until": [], "max_gen_toks": tokens, "do_sample": False}
    wanted = [Instance(request_type="generate_until", doc={}, arguments=(prompt, options), idx=0) for prompt in prompts]
    began = time.perf_counter()
    expected = theirs.generate_until(wanted, disable_tqdm=True)
    answer.numbers["hf texts s"] = time.perf_counter() - began
    same = sum(one.text == other for one, other in zip(written, expected, strict=True)) / number
    answer.numbers["same texts"] = same
    answer.expect(same >= SAME_TEXTS, f"only {same:.0%} of the texts are the same")
    return answer


def written_checkpoint(given: Given) -> Path:
    """A model of random weights, so large that no two tokens are nearly as probable, and its tokenizer."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    width, layers = (64, 2) if given.tiny else (1024, 12)
    model = LlamaModel(
        width=width, layers=layers, heads=width // 32, ffn_width=3 * width, context_length=512, initializer_range=0.08
    )
    return write_checkpoint(given.work / "checkpoint", texts, 2_000, model)


def requests(number: int) -> list[Instance]:
    """Continuations of pieces of text, a word after others."""
    words, draw = (ROOT / "README.md").read_text(encoding="utf-8").split(), random.Random(0)
    found = []
    for place in range(number):
        start, length = draw.randrange(len(words) - 60), draw.randint(3, 40)
        context = " ".join(words[start : start + length])
        arguments = (context, " " + " ".join(words[start + length : start + length + draw.randint(1, 5)]))
        found.append(Instance(request_type="loglikelihood", doc={}, arguments=arguments, idx=place, doc_id=place))
    return found
