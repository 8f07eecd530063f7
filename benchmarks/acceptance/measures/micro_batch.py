"""`training.micro_batch=0`: the largest that fits is found by trial, and steps with it are as fast as ever."""

import re
import statistics
from dataclasses import replace
from functools import partial

from accelerate.utils import release_memory
from loops.shapes import GPU, configuration

from acceptance.command import artefact, last_line, ran, result
from acceptance.given import Answer, Given
from acceptance.stepping import batches, seconds_a_step, stepper
from paribus.training.distributed import ALONE
from paribus.training.losses import compile_anew
from paribus.training.micro_batch import largest_fitting, trial
from paribus.training.step import Stepper

SHAPE = GPU["160m"]
ROWS, START = 512, 64
"""Contexts of a global batch, more than fit at once, and of the first trial."""
ASKED = ("until=training", "training.micro_batch=0", "budget=equal_steps")
OVERRIDES = {
    True: ("budget.steps=4",),
    False: ("budget.steps=4", "model=160m", f"training.global_batch={ROWS}", "training.checkpoints=1"),
}
FOUND = r"training\.micro_batch=0: (\d+) is the largest that fits"
SLOWER = 1.02
"""What a step after the search may take of one that searched nothing."""
ROUNDS = 2
"""How often both are timed, by turns: clocks that drift slow down the one as well as the other."""


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
    found, after, without = START, [], []
    for _ in range(ROUNDS):
        found, milliseconds = _searched(given, found)
        after.append(milliseconds)
        without.append(_alone(given, found))
    answer.numbers |= {"found in 160m": found, "ms after the search": after, "ms without": without}
    answer.expect(not slower(after, without), "steps after the search are slower")
    return answer


def slower(after: list[float], without: list[float]) -> bool:
    """Whether steps are slower after a search in every round than without one in any, by more than `SLOWER`."""
    return min(after) > SLOWER * max(without)


def _searched(given: Given, start: int) -> tuple[int, float]:
    """The micro-batch that is found, `start` first, and the time of a step with it after the search."""
    release_memory()
    stepped = _stepper(given, start)
    tried = partial(trial, stepped.accelerator, ALONE, stepped.prepared, share=ROWS, length=SHAPE.context_length)
    found = largest_fitting(start, ROWS, tried)
    compile_anew()
    return found, _milliseconds(replace(stepped, micro_batch=found))


def _alone(given: Given, micro_batch: int) -> float:
    """The time of a step of a model that has searched nothing, by code of its own."""
    release_memory()
    compile_anew()
    return _milliseconds(_stepper(given, micro_batch))


def _stepper(given: Given, micro_batch: int) -> Stepper:
    asked = (f"training.global_batch={ROWS}", f"training.micro_batch={micro_batch}")
    config = configuration(SHAPE, 10, given.device, *asked)
    return stepper(config.model, SHAPE.vocab_size, config.training, given.torch_device)


def _milliseconds(stepped: Stepper) -> float:
    """The median of four steps."""
    batch = next(iter(batches(ROWS, SHAPE.context_length, SHAPE.vocab_size, 1)))
    return 1e3 * statistics.median(seconds_a_step(stepped, batch, 2, 4))
