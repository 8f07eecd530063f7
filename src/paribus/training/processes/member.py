"""A process of a group that carries out one stage: `launch` starts it on DIRECTORY and REQUESTS.

It reads the frozen job in DIRECTORY, and in REQUESTS what signals ask of its agent; the main process writes the stage's
result into DIRECTORY, a failing one what went wrong.
"""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from paribus.engine.processes import die_with_parent, ignore_requests
from paribus.errors import stopped_as_meant
from paribus.stage import JSON, Reporter, SilentReporter, StageContext
from paribus.store.files import write_json
from paribus.store.provenance import Code, hold_to, loaded_code
from paribus.training.processes.group import (
    AGENT,
    REPORTS,
    RESULT,
    FileReporter,
    read_job,
    report_failure,
    stage_context,
)
from paribus.training.processes.requests import Requests

Work = Callable[[StageContext, int, Requests], dict[str, JSON]]
"""What one of so many processes does of a stage; the result is the main process'."""


def run_member(work: Work, *, all_report: bool = False) -> int:
    """Do `work`; 0. What it reports is the main process' alone, unless `all_report`.

    A process that fails ends here, with 1: at the end of the interpreter CUDA and NCCL may wait for the other processes
    of the group, and these for it to be gone.
    """
    die_with_parent(int(os.environ[AGENT]))
    ignore_requests()
    directory, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    try:
        _carry_out(work, directory, rank, Requests(Path(sys.argv[2])), reports=all_report or rank == 0)
    except BaseException as error:
        report_failure(directory, f"process {rank}", error)
        with suppress(OSError):  # a full disk takes no traceback
            # Of a stop whoever started the group says a line for all.
            if not stopped_as_meant(error):
                traceback.print_exc()
            sys.stderr.flush()
        os._exit(1)
    return 0


def _carry_out(work: Work, directory: Path, rank: int, requests: Requests, *, reports: bool) -> None:
    job = read_job(directory)
    code = Code.from_json(job["code"])
    code.require(loaded_code())
    hold_to(code)
    report: Reporter = FileReporter(directory / REPORTS) if reports else SilentReporter()
    result = work(stage_context(job, report), job["processes_a_node"] * job["nodes"], requests)
    if rank == 0:
        write_json(directory / RESULT, result)
