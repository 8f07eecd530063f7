"""One of the processes that score the checkpoints of one run, as `launch` starts them."""

import os
from dataclasses import replace

from paribus.evaluation.scores import score_checkpoints
from paribus.modeling.device import resolve_device
from paribus.stage import JSON, OFFLINE, StageContext
from paribus.training.distributed import Requests, joined_by_gloo, run_member


def score(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Score as one of `processes` processes, on a GPU of its own; signals end an evaluation at once."""
    evaluation = context.config.evaluation
    if resolve_device(evaluation.device, "evaluation.device").type == "cuda":
        evaluation = replace(evaluation, device=f"cuda:{os.environ['LOCAL_RANK']}")
    with joined_by_gloo(processes) as host:
        return score_checkpoints(replace(context, config=replace(context.config, evaluation=evaluation)), host)


def main() -> int:
    """Score; 0 unless this process failed."""
    os.environ.update(OFFLINE)
    return run_member(score)
