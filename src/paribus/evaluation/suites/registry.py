"""The registry of our own tasks; every other name is one of lm-eval's or of the user's (`evaluation.borrowed`)."""

import difflib
from collections.abc import Sequence
from types import MappingProxyType

from paribus.evaluation.suites.arc import ARC_CHALLENGE, ARC_EASY
from paribus.evaluation.suites.benchmark import Benchmark
from paribus.evaluation.suites.boolq import BOOLQ
from paribus.evaluation.suites.classification import CLASSIFICATION
from paribus.evaluation.suites.commonsense_qa import COMMONSENSE_QA
from paribus.evaluation.suites.copa import COPA
from paribus.evaluation.suites.drop import DROP
from paribus.evaluation.suites.hellaswag import HELLASWAG
from paribus.evaluation.suites.hotpotqa import HOTPOTQA
from paribus.evaluation.suites.lambada import LAMBADA_OPENAI
from paribus.evaluation.suites.memotrap import MEMOTRAP
from paribus.evaluation.suites.nq import NQ_OPEN, NQ_OPEN_BOOK
from paribus.evaluation.suites.nq_swap import NQ_SWAP
from paribus.evaluation.suites.openbookqa import OPENBOOKQA
from paribus.evaluation.suites.piqa import PIQA
from paribus.evaluation.suites.race import RACE_HIGH, RACE_MIDDLE
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.siqa import SIQA
from paribus.evaluation.suites.squad import SQUAD
from paribus.evaluation.suites.storycloze import STORYCLOZE
from paribus.evaluation.suites.translations import TRANSLATIONS
from paribus.evaluation.suites.triviaqa import TRIVIAQA, TRIVIAQA_OPEN_BOOK
from paribus.evaluation.suites.webqs import WEBQS
from paribus.evaluation.suites.winogrande import WINOGRANDE

CONTINUATION = "continuation"
"""The task made from held-out text; it needs no files."""

_COMMONSENSE = (
    BOOLQ, HELLASWAG, OPENBOOKQA, PIQA, SIQA, STORYCLOZE, WINOGRANDE, ARC_EASY, ARC_CHALLENGE, COMMONSENSE_QA, COPA,
)  # fmt: skip
_READING = (RACE_HIGH, RACE_MIDDLE, SQUAD, HOTPOTQA, DROP)
_ANSWERS = (TRIVIAQA, WEBQS, NQ_OPEN, TRIVIAQA_OPEN_BOOK, NQ_OPEN_BOOK, NQ_SWAP)
BENCHMARKS = MappingProxyType(
    {
        benchmark.name: benchmark
        for benchmark in (*_COMMONSENSE, LAMBADA_OPENAI, *MEMOTRAP, *CLASSIFICATION, *_READING, *_ANSWERS)
    }
)


def task_names() -> list[str]:
    """Every task of ours, `continuation` first."""
    return [CONTINUATION, *BENCHMARKS, *TRANSLATIONS, *SEGMENTATIONS]


def is_ours(name: str) -> bool:
    """Whether a task is one of ours."""
    return name in (CONTINUATION, *BENCHMARKS, *TRANSLATIONS, *SEGMENTATIONS)


def unknown_task(name: str, tasks: Sequence[str] | None = None) -> str | None:
    """What is wrong with a name that is none of `tasks`, by default all, with the nearest; None for a known name."""
    known = task_names() if tasks is None else tasks
    if name in known:
        return None
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    return f"unknown task {name!r}; {hint}known: {', '.join(known)}"


def benchmarks(tasks: tuple[str, ...]) -> list[Benchmark]:
    """The benchmarks among known `tasks`, in the order asked for."""
    return [BENCHMARKS[name] for name in tasks if name in BENCHMARKS]


def prompted(tasks: tuple[str, ...]) -> list[str]:
    """The tasks whose items are prompts, so that there are examples and shots; the others are lists of files' lines."""
    return [name for name in tasks if name not in TRANSLATIONS and name not in SEGMENTATIONS]
