"""Group `finetuning`: tasks that the trained model is fine-tuned on and scored on."""

from typing import Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.types import NonNegative, PathText, Positive, PositiveFloat, Probability, Strings


@group
class NoFinetuning:
    """The model is scored as it was trained."""

    kind: Literal["none"] = identity("none", doc="No fine-tuning.")


@group
class ScrollsFinetuning:
    """Fine-tuning on tasks of SCROLLS (Shaham et al. 2022), from the last checkpoint anew for each task."""

    kind: Literal["scrolls"] = identity("scrolls", doc="Questions about long documents, and their summaries.")
    tasks: Strings = identity(
        ("narrative_qa", "qasper", "contract_nli", "qmsum", "gov_report"),
        doc="Names of tasks (those of In-Context Pretraining by default), each fine-tuned on by itself.",
    )
    data: PathText | None = execution(
        None, doc="Directory with <task>/train.jsonl[.gz] and validation.jsonl[.gz]; their contents are the identity."
    )
    source: Literal["files", "hub"] = execution(
        "files", doc="Files that data lacks are an error, or fetched into it from the Hugging Face hub."
    )
    epochs: PositiveFloat = identity(1.0, doc="Passes over a task's training examples, rounded up to whole batches.")
    learning_rate: PositiveFloat = identity(1e-4, doc="Peak learning rate; it ends at 0.")
    warmup_share: Probability = identity(0.1, doc="Share of the steps that are linear warm-up.")
    global_batch: Positive = identity(32, doc="Examples a step.")
    answer_characters: Positive = identity(
        2_000, doc="Answers longer than this are cut, in training and as they are written; half a context must hold it."
    )
    document_characters: Positive | None = identity(
        None, doc="Longest part of a document that is read, from its beginning; null: as much as fits the context."
    )
    limit: Positive | None = identity(None, doc="Scored items a task, from its start; null takes all.")
    processes: NonNegative | None = execution(
        None,
        doc="Processes of one node that each fine-tune on a task at a time, a GPU each; 0: one a visible GPU; null: on "
        "GPUs as many as train, on a CPU one. No number depends on it.",
    )


FinetuningConfig = NoFinetuning | ScrollsFinetuning
