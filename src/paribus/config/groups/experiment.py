"""Block `experiment` of an experiment file: what the table shows and what the paper says."""

from typing import Any, Literal

from paribus.config.declare import execution, group
from paribus.config.groups.types import Name


@group
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
        "auto",
        doc="The test over items. auto: McNemar's where every item is right or wrong, else the paired t-test.",
    )
    plain_t_test: bool = execution(
        False,
        doc="Whether to show the unpaired t-test of papers too, over the scores of each seed and checkpoint.",
    )
    paper: bool = execution(
        False, doc="Whether each number has the paper's beside it, with the difference of ours from it."
    )


def default_table() -> TableConfig:
    """The table of a sweep that says nothing about it: all measures, compared with the first row."""
    cls: Any = TableConfig
    table: TableConfig = cls()
    return table


@group
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
