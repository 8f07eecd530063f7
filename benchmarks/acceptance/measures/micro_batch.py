"""`training.micro_batch=0`: the largest that fits is found by trial, and steps with it are as fast as ever."""

import re
import statistics
from dataclasses import replace
from functools import partial
from typing import Any

from loops.shapes import GPU, configuration

from acceptance.command import artefact, last_line, ran, result
from acceptance.given import Answer, Given
from acceptance.stepping import batches, seconds_a_step, stepper
from paribus.training.fit.search import largest_fitting, trial
from paribus.training.processes.host import ALONE
from paribus.training.step.loss import compile_anew

ROWS = 512
"""Contexts of a global batch, more than fit at once."""
ASKED = ("until=training", "training.micro_batch=0", "budget=equal_steps")
OVERRIDES = {
    True: ("budget.steps=4",),
    False: ("budget.steps=4", "model=160m", f"training.global_batch={ROWS}", "training.checkpoints=1"),
}
FOUND = r"training\.micro_batch=0: (\d+) is the largest that fits"
SLOWER = 1.02
"""What a step after the search may take of one that searched nothing."""


def measure(given: Given) -> Answer:
    """What a run found and took, and on a GPU the milliseconds of a step after a search and without one."""
    answer, root, log = Answer(), given.work / "root", given.work / "log.txt"
    asked = (*ASKED, *OVERRIDES[given.tiny])
    answer.expect(ran(given, root, *asked, log=log) == 0, last_line(log))
    if answer.wrong:
        return answer
    made, gib = result(artefact(root, "training")), 2**30
    answer.numbers["found"] = made["micro_batch"]
    if given.device == "cpu":
        return answer
    said = re.search(FOUND, log.read_text(encoding="utf-8"))
    answer.expect(said is not None and int(said[1]) == made["micro_batch"], "the command does not say what was found")
    answer.numbers |= {"peak GiB": made["memory_peak"] / gib, "predicted GiB": made["memory"] / gib}
    after, without = (_milliseconds(given, search=search) for search in (True, False))
    answer.numbers |= {"found in 160m": after[0], "ms after the search": after[1], "ms without": without[1]}
    answer.expect(after[1] <= SLOWER * without[1], "steps after the search are slower")
    return answer


def _milliseconds(given: Given, *, search: bool) -> tuple[int, float]:
    """The micro-batch, and the median time of a step with it: what is found, or that from the start."""
    shape = GPU["160m"]
    asked = (f"training.global_batch={ROWS}", f"training.micro_batch={64 if search else _found(given)}")
    config = configuration(shape, 10, given.device, *asked)
    stepped: Any = stepper(config.model, shape.vocab_size, config.training, given.torch_device)
    if search:
        tried = partial(trial, stepped.accelerator, ALONE, stepped.prepared, shape.context_length)
        found = largest_fitting(config.training.micro_batch, ROWS, tried)
        compile_anew()
        stepped = replace(stepped, micro_batch=found)
        (given.work / "found").write_text(str(found), encoding="utf-8")
    batch = next(iter(batches(ROWS, shape.context_length, shape.vocab_size, 1)))
    return stepped.micro_batch, 1e3 * statistics.median(seconds_a_step(stepped, batch, 2, 4))


def _found(given: Given) -> int:
    return int((given.work / "found").read_text(encoding="utf-8"))
