"""One of the processes that train one model: `launch` starts it on DIRECTORY and REQUESTS.

It reads the frozen job in DIRECTORY, and in REQUESTS what signals ask of its agent; the main process writes the stage's
result into DIRECTORY, a failing one what went wrong.
"""

import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import torch.distributed

from paribus.engine.process_ends import die_with_parent, ignore_requests
from paribus.stage.context import Reporter, SilentReporter
from paribus.store.atomic import write_json
from paribus.store.code import Code, hold_to, loaded_code
from paribus.training.build import train_in_process
from paribus.training.processes.group import REPORTS, RESULT, FileReporter, read_job, report_failure, stage_context
from paribus.training.processes.requests import Requests


def main() -> int:
    """Train; 0 unless this process failed."""
    die_with_parent()
    ignore_requests()
    directory, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    try:
        _train(directory, rank, Requests(Path(sys.argv[2])))
    except BaseException as error:
        report_failure(directory, f"process {rank}", error)
        with suppress(OSError):  # a full disk takes no traceback
            traceback.print_exc()
        return 1
    return 0


def _train(directory: Path, rank: int, requests: Requests) -> None:
    job = read_job(directory)
    code = Code.from_json(job["code"])
    code.require(loaded_code())
    hold_to(code)
    report: Reporter = SilentReporter() if rank else FileReporter(directory / REPORTS)
    result = train_in_process(stage_context(job, report), job["processes_a_node"] * job["nodes"], requests)
    if rank == 0:
        write_json(directory / RESULT, result)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
