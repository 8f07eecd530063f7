"""Columns that a table can have, the metrics that tasks are reported by, and the order of rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from paribus.config.groups.evaluation import TableConfig
from paribus.config.validate import unknown
from paribus.errors import ConfigurationError, Problem

SEEDS_TO_JUDGE = 3
"""Seeds below which nothing is said of which model is better: what a seed moves is then unknown, or nearly so."""
ITEMS_TO_JUDGE = 30
"""Items, or documents, below which nothing is said of others like them: no interval, no test, no best."""

Kind = Literal[
    "accuracy", "percent", "bits_per_byte", "perplexity", "score", "ratio", "count", "size", "flops", "hours", "loss"
]  # fmt: skip
"""`accuracy` is a share, shown in %; `percent` one of a whole corpus, whose items have linearised values; `perplexity`
is measured and tested in bits, and shown as 2 to their mean; `score` is any other number that items have."""
Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Metric:
    """A metric that tasks are reported by."""

    better: Better | None
    family: str
    """Metrics of one family measure alike: the average over tasks is of one."""
    source: str = ""
    """The metric of items that it is computed from, where that has another name."""


METRICS: Mapping[str, Metric] = {
    "acc": Metric("higher", "accuracy"),
    "exact_match": Metric("higher", "exact match"),
    "em": Metric("higher", "exact match"),
    "f1": Metric("higher", "F1"),
    "acc_norm": Metric("higher", "accuracy"),
    "acc_bytes": Metric("higher", "accuracy"),
    "precision": Metric("higher", "precision"),
    "recall": Metric("higher", "recall"),
    "mcc": Metric("higher", "Matthews correlation"),
    "bleu": Metric("higher", "BLEU"),
    "tokenized_bleu": Metric("higher", "tokenized BLEU"),
    "chrf": Metric("higher", "chrF"),
    "rouge_geometric_mean": Metric("higher", "ROUGE"),
    "rouge1": Metric("higher", "ROUGE-1"),
    "rouge2": Metric("higher", "ROUGE-2"),
    "rougeL": Metric("higher", "ROUGE-L"),
    "bits_per_byte": Metric("lower", "bits per byte"),
    "choice_bits": Metric("lower", "bits of the right choice"),
    "target_bits": Metric("lower", "bits of the target"),
    "perplexity": Metric("lower", "perplexity", source="target_bits"),
    "word_f1": Metric("higher", "F1 of words"),
    "word_precision": Metric("higher", "precision of words"),
    "word_recall": Metric("higher", "recall of words"),
}
"""Known metrics, those that a task is rather reported by first."""

PERCENT: Mapping[str, str] = {
    "bleu": "BLEU",
    "tokenized_bleu": "tokenized BLEU",
    "rouge_geometric_mean": "ROUGE",
    "word_precision": "precision",
    "word_recall": "recall",
    "word_f1": "F1",
}
"""Metrics of a whole corpus, and the labels of their columns."""
WORDS = ("word_precision", "word_recall", "word_f1")
"""Metrics of a segmented corpus, which are reported together: none says much alone."""
BESIDE: Mapping[str, str] = {"bleu": "tokenized_bleu"}
"""Metric that is reported beside the one that a task is reported by."""


@dataclass(frozen=True)
class MeasuredTask:
    """One task of a column: the shot counts and the metric that enter it."""

    task: str
    shots: tuple[int, ...]
    metric: str

    @property
    def _about(self) -> Metric:
        return METRICS.get(self.metric, Metric(None, self.metric))

    @property
    def scored(self) -> str:
        """The metric of items that its values are."""
        return self._about.source or self.metric

    @property
    def family(self) -> str:
        """Name of what its metric measures."""
        return self._about.family

    @property
    def better(self) -> Better | None:
        """Better direction of its metric; None where nobody said."""
        return self._about.better


@dataclass(frozen=True)
class Measure:
    """One measure: where its values come from, how they read, and which direction is better."""

    key: str
    group: str
    label: str
    kind: Kind
    better: Better | None = None
    parts: tuple[MeasuredTask, ...] = ()
    field: str = ""
    """Key of a training's result or an evaluation's statistics; of bits per byte the set of texts, none of held-out."""
    main: bool = True
    """True if it stays where there is little room."""
    decimals: int | None = None
    """Digits after the point; None for those of its kind."""

    @property
    def scored(self) -> bool:
        """True if it is a mean over items or documents, so that it has a standard error and a test."""
        return self.kind in ("accuracy", "percent", "bits_per_byte", "perplexity", "score")

    @property
    def of_model(self) -> bool:
        """True if it is of trained models, so that another seed would change it."""
        if self.parts:
            return any(part.metric not in WORDS for part in self.parts)
        return self.scored or self.kind == "loss" or self.key == UNIFORMITY.key

    @property
    def factor(self) -> float:
        """Factor by which a value is multiplied to be shown."""
        return 100.0 if self.kind in ("accuracy", "percent") else 1.0

    @property
    def families(self) -> tuple[str, ...]:
        """Names of what the metrics of its tasks measure."""
        return tuple(dict.fromkeys(part.family for part in self.parts))


BITS_PER_BYTE = Measure("bits_per_byte", "Held-out text", "bits / byte", "bits_per_byte", "lower")

HELDOUT_SETS: Mapping[str, str] = {"heldout_clean": "clean", "heldout_concatenated": "concatenated"}
"""Sets of texts that are held-out documents of the corpus, and the labels of their columns."""

CONCATENATED = "_concatenated"
"""Ends the name of a set of texts that stand end to end in random order."""
PERPLEXITY = "perplexity"


def of_texts(name: str, named: Mapping[str, str]) -> Measure:
    """The column of a set of texts, in bits a byte; `named` has what sets are called."""
    if name in HELDOUT_SETS:
        return replace(BITS_PER_BYTE, key=f"{name}/bits_per_byte", label=HELDOUT_SETS[name], field=name)
    whole = name.removesuffix(CONCATENATED)
    label = "bits / byte" if whole == name else "end to end"
    return Measure(f"{name}/bits_per_byte", named.get(whole, whole), label, "bits_per_byte", "lower", field=name)


def perplexity_of_texts(texts: Measure) -> Measure:
    """The column in perplexity a token, which only rows that cut the texts alike share."""
    return replace(texts, key=f"{texts.field}/{PERPLEXITY}", label=PERPLEXITY, kind="perplexity")


STATISTICS = (
    Measure("bytes_per_token", "Text", "bytes / token", "ratio", "higher", field="bytes_per_token"),
    Measure("tokens_per_word", "Text", "tokens / word", "ratio", "lower", field="tokens_per_word", main=False),
    Measure("entropy", "Text", "entropy", "ratio", field="entropy", main=False),
    Measure("redundancy", "Text", "redundancy", "ratio", field="redundancy", main=False),
    Measure("renyi_efficiency", "Text", "Rényi efficiency", "ratio", field="renyi_efficiency", main=False),
    Measure("unused_tokens", "Text", "unused tokens", "count", field="unused_tokens", main=False),
)
UNIFORMITY = Measure("uniformity", "Embeddings", "uniformity", "ratio", main=False)
STEPS = Measure("steps", "Training", "steps", "count", field="steps", main=False)
BATCH_BYTES = Measure("batch_bytes", "Training", "text / step", "size", field="batch_bytes", main=False)
CONTEXT_BYTES = Measure("context_bytes", "Training", "text / context", "size", field="context_bytes", main=False)
TRAINING = (
    Measure("tokens", "Training", "tokens", "count", field="tokens"),
    Measure("text_bytes", "Training", "text", "size", field="text_bytes"),
    Measure("final_loss", "Training", "final loss", "loss", field="final_loss"),
    Measure("epochs", "Training", "epochs", "ratio", field="epochs", main=False),
    STEPS,
    BATCH_BYTES,
    CONTEXT_BYTES,
    Measure("parameters", "Training", "parameters", "count", field="parameters"),
    Measure("flops", "Training", "FLOPs", "flops", field="flops"),
    Measure("device_hours", "Training", "device-hours", "hours", field="device_hours", main=False),
)
AVERAGE = "average"
FIXED = (BITS_PER_BYTE, *STATISTICS, UNIFORMITY, *TRAINING)
MEASURES = (AVERAGE, *(column.key for column in FIXED))
"""Names of the columns that stand for no task, group of tasks or set of texts."""


Labels = tuple[str, ...]


def factors_of(factors: Sequence[str], table: TableConfig) -> tuple[str, ...]:
    """The factors in the order of the label columns: those of `table.rows`, then the others.

    Raises:
        ConfigurationError: the experiment file names a factor that the runs do not have.
    """
    if problems := [*check_factors(factors, table)]:
        raise ConfigurationError(*problems)
    return tuple(dict.fromkeys((*table.rows, *factors)))


def check_factors(factors: Sequence[str], table: TableConfig) -> Iterator[Problem]:
    """(path, what is wrong) of each factor that the experiment file names and that the runs do not have."""
    named = {"rows": table.rows, "order": table.order or {}, "baseline": table.baseline or {}}
    for block, names in named.items():
        for name in names:
            if name not in factors:
                yield Problem(f"experiment.table.{block}", f"factor {unknown(name, list(factors))}")


def ordered(labels: Sequence[Labels], factors: Sequence[str], table: TableConfig) -> list[Labels]:
    """Labels grouped by the first factor, then the second, and so on.

    Each factor's labels are in the order of `table.order`, and those that it does not name in that of appearance.
    """
    places: list[dict[str, int]] = []
    for index, factor in enumerate(factors):
        names = dict.fromkeys((table.order or {}).get(factor, ()))
        names |= dict.fromkeys(row[index] for row in labels)
        places.append({name: place for place, name in enumerate(names)})
    return sorted(labels, key=lambda row: [place[label] for place, label in zip(places, row, strict=True)])


def baselines(labels: Sequence[Labels], factors: Sequence[str], table: TableConfig) -> list[int | None]:
    """Place of the row that each row is compared with; None for such a row itself, and where there is none.

    Raises:
        ConfigurationError: no row has the labels of `table.baseline`.
    """
    baseline = table.baseline or {}
    if not baseline:
        return [None, *(0 for _ in labels[1:])]
    places = {row: place for place, row in enumerate(labels)}
    bases = [
        places.get(tuple(baseline.get(factor, label) for factor, label in zip(factors, row, strict=True)))
        for row in labels
    ]
    if all(place is None for place in bases):
        named = ", ".join(f"{factor}: {label}" for factor, label in baseline.items())
        known = "; ".join(", ".join(row) for row in labels[:10])
        remedy = "add an arm with it, or compare with the first row: experiment.table.baseline=null"
        raise ConfigurationError(f"experiment.table.baseline: no row has {named}; rows: {known}; {remedy}")
    return [None if base == place else base for place, base in enumerate(bases)]
