"""The closed registry of tasks that models are fine-tuned on: those of SCROLLS that In-Context Pretraining reports.

Shaham et al. 2022, arXiv 2201.03533; Shi et al., arXiv 2310.10638.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

ROUGE = ("rouge_geometric_mean", "rouge1", "rouge2", "rougeL")
TRAIN, SCORED = "train", "validation"
"""Splits; SCROLLS gives out no answers of its test splits."""


@dataclass(frozen=True)
class Task:
    """What is asked of a document, and how answers are judged."""

    name: str
    """As the hub's `tau/scrolls` calls it, and the directory of its files."""
    metrics: tuple[str, ...]
    """The one it is reported by first."""
    question: bool = True
    """Whether the input begins with a question and an empty line."""


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            Task("narrative_qa", ("f1",)),
            Task("qasper", ("f1",)),
            Task("contract_nli", ("exact_match", "f1")),
            Task("qmsum", ROUGE),
            Task("gov_report", ROUGE, question=False),
        )
    }
)
