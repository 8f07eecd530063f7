"""Block `experiment` of an experiment file: what the table shows and what the paper says."""

from typing import Any

from paribus.config.declare import execution, group


@group
class ExperimentConfig:
    """How the runs of a sweep become a table."""

    name: str = execution(doc="Short name, the file's path below experiments/.")
    title: str = execution(doc="Caption of the table.")
    question: str = execution("", doc="What the table is meant to answer, and how to read it.")
    cost: str = execution("", doc="What running it takes, at each scale.")
    paper: dict[str, Any] | None = execution(None, doc="The paper's own table: title, source, columns, rows, numbers.")
