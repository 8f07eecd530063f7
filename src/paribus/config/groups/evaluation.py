"""Groups `evaluation` and `finetuning`, and block `experiment`: what is scored, and what the table shows."""

from typing import Any, Literal

from paribus.config.fields import (
    Device,
    Name,
    NonNegative,
    NonNegativeReal,
    PathText,
    Positive,
    PositiveFloat,
    Probability,
    Shots,
    ShotsOf,
    Strings,
    Tasks,
    UpToOne,
    config_class,
    execution,
    identity,
)
from paribus.config.units import Size


@config_class
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
        """Path of the field that asks for that number."""
        return f"evaluation.{'average' if self.average_checkpoints > 1 else 'last'}_checkpoints"

    def task_shots(self, task: str) -> tuple[int, ...]:
        """Numbers of examples in the prompt of a task."""
        return (self.shots_of or {}).get(task, self.shots)


@config_class
class NoFinetuning:
    """The model is scored as it was trained."""

    kind: Literal["none"] = identity("none", doc="No fine-tuning.")


@config_class
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


@config_class
class TableConfig:
    """Which numbers the comparison table shows, and how."""

    columns: tuple[str, ...] = execution(
        (),
        doc="Measures in order: tasks (`boolq`; of one number of shots `boolq/5_shot`, of one metric `squad:f1`), "
        "names of `groups`, `average` over all tasks of one family of metrics, `bits_per_byte`, and what a run read "
        "and cost (`tokens`, `flops`). Empty: all there are.",
    )
    primary: tuple[str, ...] = execution(
        (),
        doc="Measures that decide the question, as in `columns`: their differences are adjusted for each other and "
        "marked, those of all others are exploratory. Empty: bits per byte; of a table without it the average, else "
        "every measure.",
    )
    groups: dict[str, list[str]] | None = execution(
        None, doc="Tasks whose mean is a column, by the name of the column: each task weighs the same."
    )
    shots: Literal["both", "mean", "each"] = execution(
        "both", doc="Whether a task with several numbers of shots has a column for each, for their mean, or both."
    )
    metrics: dict[str, str] | None = execution(
        None,
        doc="The metric a task is reported by, where it is not accuracy or the task's only one; `perplexity` of "
        "lambada_openai.",
    )
    rows: tuple[str, ...] = execution(
        (), doc="Factors in the order of the label columns; rows with one label of the first are a group."
    )
    order: dict[str, list[str]] | None = execution(
        None, doc="Labels of a factor in the order of their rows. Otherwise as the command sweeps them."
    )
    baseline: dict[str, str] | None = execution(
        None,
        doc="Labels of the row that others are compared with: `{encoder: merge_rank}` compares each row with the one "
        "of that encoder and otherwise the same labels. Otherwise the first row.",
    )
    bold: Literal["table", "group", "none"] = execution(
        "table",
        doc="Where the best number of a column is bold: once in the table, once in each group of rows, nowhere.",
    )
    decimals: dict[str, int] | None = execution(
        None, doc="Digits after the point by column, or by kind of number: `{accuracy: 2, bits_per_byte: 4}`."
    )
    names: dict[str, str] | None = execution(
        None, doc="What tables and plots say for a label, a factor or a task: `{longest_first: LBPE, boolq: BoolQ}`."
    )
    test: Literal["auto", "t", "bootstrap", "permutation"] = execution(
        "auto", doc="The test over items. auto: McNemar's where every item is right or wrong, else the paired t-test."
    )
    plain_t_test: bool = execution(
        False, doc="Whether to show the unpaired t-test of papers too, over the scores of each seed and checkpoint."
    )
    paper: bool = execution(
        False, doc="Whether each number has the paper's beside it, with the difference of ours from it."
    )


def default_table() -> TableConfig:
    """The table of a sweep that says nothing about it: all measures, compared with the first row."""
    cls: Any = TableConfig
    table: TableConfig = cls()
    return table


@config_class
class ExperimentConfig:
    """How the runs of a sweep become a table."""

    name: Name | None = execution(
        None, doc="Short name, the file's path below experiments/; null: the factors of the sweep."
    )
    title: str | None = execution(None, doc="Caption of the table; null: that it compares by the factors of the sweep.")
    question: str = execution("", doc="What the table is meant to answer, and how to read it.")
    cost: str = execution("", doc="What running it takes, at each scale.")
    table: TableConfig | None = execution(None, doc="Rows, columns, aggregation, grouping, bold of the table.")
    paper: dict[str, Any] | None = execution(
        None, doc="The paper's own table: title, source, columns, rows, numbers, and what its models were trained with."
    )


def table_of(experiment: ExperimentConfig | None) -> TableConfig:
    """The table of an experiment, which may say nothing about it."""
    return (experiment.table if experiment else None) or default_table()
