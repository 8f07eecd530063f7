"""What scoring computes: tokens that the model reads, from the items that the artefact `tasks` has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.schema import RunConfig
from paribus.evaluation.suites.registry import prompted
from paribus.modeling.counts import training_flops

PASSES = 3
"""Forward passes that a forward and backward pass costs as much as."""
WINDOWS = 2
"""Times that a token of a stream is read, whose windows move on by half a context."""


@dataclass(frozen=True)
class ScoringWork:
    """Forward FLOPs of scoring; not `whole` where texts are written too, whose lengths nobody knows before."""

    flops: float
    whole: bool


def scoring_work(config: RunConfig, tasks: Mapping[str, Any], vocabulary: int, bytes_per_token: float) -> ScoringWork:
    """Estimated from the bytes of items, examples and held-out texts in the record of `tasks`.

    No prompt is longer than a context.
    """
    evaluation, result = config.evaluation, tasks["result"]
    names = prompted(evaluation.tasks)
    tokens = sum(_task_tokens(config, tasks, name, bytes_per_token) for name in names)
    texts = (result["heldout"], *result.get("texts", {}).values())
    tokens += sum(text["bytes"] for text in texts) / bytes_per_token
    if evaluation.concatenated and not isinstance(config.model, EncoderDecoderModel):
        tokens += WINDOWS * sum(text["bytes"] for text in texts) / bytes_per_token
    flops = training_flops(config.model, vocabulary, round(tokens)) * evaluation.last_checkpoints / PASSES
    written = any(result["tasks"][name]["written"] for name in names)
    return ScoringWork(flops, not written and len(names) == len(evaluation.tasks))


def _task_tokens(config: RunConfig, tasks: Mapping[str, Any], name: str, bytes_per_token: float) -> float:
    """Of all items, with each number of examples before them."""
    counts, files = tasks["result"]["tasks"][name], tasks["files"]
    item = files[f"{name}.jsonl"]["bytes"] / max(1, counts["items"])
    example = files[f"{name}.fewshot.jsonl"]["bytes"] / max(1, counts["fewshot"])
    prompts = ((item + shots * example) / bytes_per_token for shots in config.evaluation.task_shots(name))
    return float(counts["items"] * sum(min(config.model.context_length, prompt) for prompt in prompts))
