"""Errors a user can act on, one class a kind of failure.

A message says what is wrong, where it was set (config path, or file and line) and what would be right.
The class travels from the child process of a stage to the record of the run, so `paribus status` can group by it.
"""

import errno
import re
from typing import ClassVar, NamedTuple, TypeGuard

ALLOCATION_FAILURES = (
    "can't allocate memory", "not enough memory", "Cannot allocate memory",
    "CUDA out of memory", "CUDA error: out of memory", "[CUDA]: out of memory", "'out of memory'",
    "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
)  # fmt: skip
"""Words of a RuntimeError for want of memory: of the host by PyTorch, or of a GPU by CUDA, Triton, NCCL, cuBLAS
or cuDNN, which take theirs beside what PyTorch keeps, or by Inductor of what it tries while it compiles."""
_CUT_ARRAY = re.compile(r"\d+ requested and -?\d+ written|Not enough free space to write \d+ bytes.*")
"""NumPy's words, without a number of the system, for an array that the disk has no room for."""


class Problem(NamedTuple):
    """One thing wrong: the path of a field, or an empty text, and what is wrong and what would be right."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ParibusError(Exception):
    """Base of every failure that paribus explains, by a text or by one or several problems.

    `failure_class` is what run records carry.
    """

    failure_class: ClassVar[str] = "infrastructure"

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__(*(Problem("", problem) if isinstance(problem, str) else problem for problem in problems))

    def __str__(self) -> str:
        first, *more = self.problems
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"the configuration has {len(self.problems)} problems:{lines}" if more else str(first)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem, in the order in which it was found."""
        return self.args


class ConfigurationError(ParibusError):
    """The configuration asks for something unknown, ill-typed or impossible."""

    failure_class = "configuration"


class DataError(ParibusError):
    """A file, document or benchmark item is missing, empty, truncated or malformed."""

    failure_class = "data"


class OutOfMemoryError(ParibusError):
    """The process or the device ran out of memory."""

    failure_class = "out-of-memory"


class NumericalError(ParibusError):
    """A loss or a weight became infinite or not a number."""

    failure_class = "numerical"


class InterruptedRunError(ParibusError):
    """The user or the scheduler stopped the run."""

    failure_class = "interrupted"


class InfrastructureError(ParibusError):
    """The machine failed: full disk, killed process, lost claim."""

    failure_class = "infrastructure"


class FullDiskError(InfrastructureError):
    """The disk is full: what would fill it again at once is not worth another try."""


FAILURE_CLASSES: dict[str, type[ParibusError]] = {cls.failure_class: cls for cls in ParibusError.__subclasses__()}


def is_out_of_memory(error: BaseException) -> bool:
    """True if an allocation failed, on a GPU or on the host."""
    listed = isinstance(error, RuntimeError) and any(text in str(error) for text in ALLOCATION_FAILURES)
    return listed or isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def is_full_disk(error: BaseException) -> bool:
    """True if there was no room for what was written."""
    if isinstance(error, OSError) and error.errno is None:
        return _CUT_ARRAY.fullmatch(str(error)) is not None
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return full or isinstance(error, FullDiskError)


def stopped_as_meant(error: BaseException) -> TypeGuard[InterruptedRunError]:
    """True for a stop that came while nothing else was going wrong, also one raised from another error."""
    return isinstance(error, InterruptedRunError) and (error.__context__ is None or error.__cause__ is not None)


def log_text(error: BaseException) -> str:
    """One line for a clean stop, else the traceback."""
    if stopped_as_meant(error):
        return f"{error.failure_class}: {error}\n"
    import traceback  # loads tokenize, which `paribus --help` does without

    return "".join(traceback.format_exception(error))


def classify(error: BaseException) -> dict[str, str]:
    """Failure class and message of an exception."""
    if isinstance(error, ParibusError) and error.failure_class in FAILURE_CLASSES:
        return {"class": error.failure_class, "message": str(error)}
    if is_out_of_memory(error):
        return {"class": "out-of-memory", "message": f"{error or 'memory ran out'}; lower training.micro_batch"}
    if isinstance(error, OSError) and is_full_disk(error):
        return {"class": "infrastructure", "message": _no_room(error)}
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        where = error.filename2 or error.filename or "a file"
        return {"class": "infrastructure", "message": f"{where} may not be written or read here ({error.strerror})"}
    if isinstance(error, KeyboardInterrupt):
        return {"class": "interrupted", "message": "stopped by a signal"}
    return {"class": "infrastructure", "message": f"{type(error).__name__}: {error}"}


def _no_room(error: OSError) -> str:
    place = error.filename
    if error.errno == errno.EFBIG:
        where = place or "a file below the output root"
        return f"{where} may not be that large here: raise the limit on the size of files (ulimit -f)"
    remedy = f" while writing {place}: free space there" if place else ": free space below the output root"
    return f"the disk is full{remedy}"
