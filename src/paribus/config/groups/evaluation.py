"""Group `evaluation`: tasks, shots, and which checkpoints are scored."""

from typing import Literal

from paribus.config.declare import execution, group, identity
from paribus.config.groups.types import (
    Device,
    NonNegative,
    NonNegativeReal,
    PathText,
    Positive,
    Shots,
    ShotsOf,
    Tasks,
    UpToOne,
)
from paribus.config.units import Size


@group
class EvaluationConfig:
    """lm-eval tasks, and bits per byte of held-out text, or of held-out targets given their sources."""

    kind: Literal["lm_eval"] = identity("lm_eval", doc="lm-eval's harness with our model and tokenizer.")
    tasks: Tasks = identity(
        ("continuation",),
        doc="Task names, ours, lm-eval's and those of include_path; continuation is made from the held-out text, the "
        "others need data. With encoder_decoder only sets of translation (wmt14_en_de) and of segmentation (pku).",
    )
    include_path: PathText | None = execution(
        None, doc="Directory with lm-eval tasks of your own, as YAML; their contents are the identity."
    )
    texts: Tasks = identity(
        (), doc="Names of sets of texts for bits per byte, each <data>/<name>/test.jsonl[.gz|.zst] (field text)."
    )
    data: PathText | None = execution(
        None, doc="Directory with the files of tasks and texts; their contents are the identity."
    )
    source: Literal["files", "hub"] = execution(
        "files", doc="Files that data lacks are an error, or fetched into it from the Hugging Face hub."
    )
    shots: Shots = identity((0, 5), doc="Numbers of examples in the prompt (papers: 0 and 5).")
    shots_of: ShotsOf | None = identity(
        None, doc="Tasks with numbers of their own: {ag_news: [32], squad: [2]}; null: all as in shots."
    )
    limit: Positive | None = identity(
        None, doc="Items a task, and pairs of a test set of translation, from its start; null takes all."
    )
    last_checkpoints: Positive = identity(1, doc="Checkpoints scored, the last ones; scores are averaged (papers: 5).")
    average_checkpoints: Positive = identity(
        1,
        doc="Checkpoints whose weights a scored model is the mean of: each that is scored and those before it (Vaswani "
        "et al. 2017: 5, big 20).",
    )
    continuation_items: Positive = identity(500, doc="Largest number of items of the continuation task.")
    context_characters: Positive = identity(200, doc="Longest context of a continuation item, in characters.")
    continuation_characters: Positive = identity(80, doc="Longest continuation of an item, in characters.")
    heldout_documents: Positive = identity(
        100,
        doc="Held-out documents, or pairs, and documents of each set of texts, that bits per byte are of; all where "
        "there are fewer.",
    )
    document_bytes: Size = identity(8192, doc="Bytes of each of these documents, from its start; pairs are whole.")
    concatenated: bool = identity(
        True,
        doc="Score documents also end to end: held-out ones each after related ones (heldout_concatenated), those of a "
        "set of texts in random order (<name>_concatenated).",
    )
    clean_overlap: UpToOne = identity(
        0.2,
        doc="heldout_clean has the held-out documents of which no training document has a larger share of the 8-grams.",
    )
    translations: NonNegative = identity(
        3000,
        doc="Held-out pairs that an encoder_decoder translates for BLEU, the first of the sample; 0: none. How many "
        "of a test set, limit says.",
    )
    beams: Positive = identity(4, doc="Hypotheses of a translation that are followed at once (Ott et al.: 4).")
    length_penalty: NonNegativeReal = identity(
        0.6, doc="Power of its tokens by which a hypothesis' log-probability is divided (Ott et al.: 0.6)."
    )
    fewshot_seed: NonNegative = identity(1234, doc="Draws the examples in the prompt.")
    precision: Literal["fp32", "tf32", "bf16"] = identity(
        "fp32",
        doc="What models are scored in: float32, with matrix products in TF32 (GPUs only), or bfloat16, which moves "
        "scores by rounding.",
    )
    batch_tokens: Positive | None = execution(
        None,
        doc="Tokens of a batch, padding and what is written included; halved where memory is short. null: 32,768 on a "
        "GPU; on a CPU 2,048, which its caches hold, and 16,384 where texts are written.",
    )
    processes: NonNegative | None = execution(
        None,
        doc="Processes of one node that score together, a GPU each; 0: one a visible GPU; null: on GPUs as many as "
        "train, on a CPU one. No score depends on it.",
    )
    device: Device = execution("auto", doc="auto, cpu, cuda or cuda:N.")

    @property
    def checkpoints_read(self) -> int:
        """The last checkpoints that a training must have kept."""
        return self.last_checkpoints + self.average_checkpoints - 1

    @property
    def checkpoints_path(self) -> str:
        """Where that number is asked for."""
        return f"evaluation.{'average' if self.average_checkpoints > 1 else 'last'}_checkpoints"

    def task_shots(self, task: str) -> tuple[int, ...]:
        """Numbers of examples in the prompt of a task."""
        return (self.shots_of or {}).get(task, self.shots)
