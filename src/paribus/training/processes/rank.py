"""One of the processes that train one model, as `launch` starts them."""

import torch.distributed

from paribus.stage import JSON, StageContext
from paribus.training.build import train_in_process
from paribus.training.processes.member import run_member
from paribus.training.processes.requests import Requests


def train(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """The share of this process of one of `processes`; the stage's result."""
    result = train_in_process(context, processes, requests)
    torch.distributed.destroy_process_group()
    return result


def main() -> int:
    """Train; 0 unless this process failed."""
    return run_member(train)
