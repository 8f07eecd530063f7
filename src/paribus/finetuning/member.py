"""One of the processes that fine-tune on the tasks of one run, a task each at a time, as `launch` starts them."""

import os
from dataclasses import replace

from paribus.errors import InterruptedRunError
from paribus.finetuning.run import begin, finish, left
from paribus.modeling.device import resolve_device
from paribus.stage import JSON, OFFLINE, StageContext
from paribus.training.distributed import Requests, run_member

GROUP = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
"""By these variables accelerate would train one model in all processes."""


def finetune(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Finish tasks that no other process has taken, on a GPU of its own; what they give lies in `context.work`."""
    _, local, _ = (os.environ.pop(name) for name in GROUP)
    config = context.config
    device, training, evaluation = f"cuda:{local}", config.training, config.evaluation
    if resolve_device(training.device, "training.device").type == "cuda":
        training = replace(training, device=device)
    if resolve_device(evaluation.device, "evaluation.device").type == "cuda":
        evaluation = replace(evaluation, device=device)
    context = replace(context, config=replace(config, training=training, evaluation=evaluation))
    context, start = begin(context, requests)
    for name in left(context):
        if _takes(context, name):
            try:
                finish(context, name, start)
            except InterruptedRunError:
                # Half a minute after the end of one process its agent ends the others by force.
                requests.wait_for_others()
                raise
    return {}


def _takes(context: StageContext, name: str) -> bool:
    """Whether this process is the first of its group to ask for a task."""
    try:
        (context.work / "group" / f"{name}.taken").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def main() -> int:
    """Fine-tune; 0 unless this process failed."""
    os.environ.update(OFFLINE)
    return run_member(finetune, all_report=True)
