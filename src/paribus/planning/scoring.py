"""What scoring computes: tokens that the model reads and writes, from the items that the artefact `tasks` has."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.schema import RunConfig
from paribus.evaluation.models.batch_tokens import WRITTEN
from paribus.evaluation.suites.registry import prompted
from paribus.evaluation.suites.translations import TRANSLATIONS
from paribus.modeling.counts import training_flops

PASSES = 3
"""Forward passes that a forward and backward pass costs as much as."""
WINDOWS = 2
"""Times that a token of a stream is read, whose windows move on by half a context."""
LONGEST = 1.5
"""Tokens that the hypotheses of a batch go on for, to those of its translations: all wait for the longest."""
SLOWER = 3
"""Times as long that FLOPs of a token of each hypothesis take as those of whole sequences, as keys and values are moved
about: 2.5 to 3 on a core of a CPU."""
LAYER_SECONDS = 0.002
"""What a step takes for each layer of the decoder beside its FLOPs: on a core of a CPU, of one sentence."""
Tasks = Mapping[str, Any]
"""The record of the artefact `tasks`."""


@dataclass(frozen=True)
class ScoringWork:
    """What scoring takes; not `whole` where answers are written too, whose lengths nobody knows before."""

    flops: float
    """Of forward passes, at the speed of training."""
    seconds: float
    """Beside these, on a device: what steps take that write a token each, however few FLOPs they have."""
    whole: bool


def scoring_work(
    config: RunConfig, tasks: Tasks, vocabulary: int, bytes_per_token: float, *, gpu: bool = False
) -> ScoringWork:
    """Estimated from the bytes of items, examples and held-out texts in the record of `tasks`.

    No prompt is longer than a context.
    """
    if isinstance(config.model, EncoderDecoderModel):
        return _translating(config, config.model, tasks, vocabulary, bytes_per_token, WRITTEN["cuda" if gpu else "cpu"])
    evaluation, result = config.evaluation, tasks["result"]
    names = prompted(evaluation.tasks)
    tokens = sum(_task_tokens(config, tasks, name, bytes_per_token) for name in names)
    texts = (result["heldout"], *result.get("texts", {}).values())
    tokens += sum(text["bytes"] for text in texts) / bytes_per_token
    if evaluation.concatenated:
        tokens += WINDOWS * sum(text["bytes"] for text in texts) / bytes_per_token
    flops = training_flops(config.model, vocabulary, round(tokens)) * evaluation.last_checkpoints / PASSES
    written = any(result["tasks"][name]["written"] for name in names)
    return ScoringWork(flops, 0.0, whole=not written)


def _task_tokens(config: RunConfig, tasks: Tasks, name: str, bytes_per_token: float) -> float:
    """Of all items, with each number of examples before them."""
    counts, files = tasks["result"]["tasks"][name], tasks["files"]
    item = files[f"{name}.jsonl"]["bytes"] / max(1, counts["items"])
    example = files[f"{name}.fewshot.jsonl"]["bytes"] / max(1, counts["fewshot"])
    prompts = ((item + shots * example) / bytes_per_token for shots in config.evaluation.task_shots(name))
    return float(counts["items"] * sum(min(config.model.context_length, prompt) for prompt in prompts))


def _translating(  # noqa: PLR0917 (as `scoring_work`)
    config: RunConfig, model: EncoderDecoderModel, tasks: Tasks, vocabulary: int, bytes_per_token: float, batch: int
) -> ScoringWork:
    """Held-out targets are read once and translations written by as many hypotheses at once as there are beams.

    A translation is taken to be as long as its source, which is half of what a pair has in its file.
    """
    evaluation = config.evaluation
    batch = evaluation.batch_tokens or batch
    read = written = sources = steps = 0.0
    for number, translated, pair_bytes in _sets(config, tasks):
        length = min(model.context_length, 1 + pair_bytes / 2 / bytes_per_token)
        longest = min(model.context_length, LONGEST * length)
        rows = max(1, batch // math.ceil((1 + evaluation.beams) * length))
        read += number * length
        sources += (number + translated) * length
        written += translated * evaluation.beams * longest
        steps += math.ceil(translated / rows) * longest
    reading = training_flops(model, vocabulary, round(read), round(sources))
    writing = training_flops(model, vocabulary, round(written)) * SLOWER
    checkpoints = evaluation.last_checkpoints
    seconds = checkpoints * steps * model.decoder_layers * LAYER_SECONDS
    return ScoringWork(checkpoints * (reading + writing) / PASSES, seconds, whole=True)


def _sets(config: RunConfig, tasks: Tasks) -> Iterator[tuple[int, int, float]]:
    """Pairs whose targets are read, pairs that are translated and bytes of one in its file, of each set of pairs."""
    result, files = tasks["result"], tasks["files"]
    pairs = result["heldout"]["documents"]
    yield pairs, min(pairs, config.evaluation.translations), files["heldout.jsonl"]["bytes"] / max(1, pairs)
    for name in config.evaluation.tasks:
        if name in TRANSLATIONS:
            items = result["tasks"][name]["items"]
            yield 0, items, files[f"{name}.pairs.jsonl"]["bytes"] / max(1, items)
