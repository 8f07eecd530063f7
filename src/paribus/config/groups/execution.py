"""Groups `tracking`, `engine` and `scale`: how and where, never what."""

from typing import Literal

from paribus.config.declare import execution, group
from paribus.config.groups.types import NonNegative, PositiveFloat


@group
class TrackingConfig:
    """Where runs are shown; the truth is the event file beside the run."""

    kind: Literal["mlflow", "none"] = execution("mlflow", doc="mlflow, or none to keep event files only.")
    uri: str | None = execution(None, doc="MLflow tracking URI; null is sqlite:/// in the output root.")
    experiment: str = execution("paribus", doc="MLflow experiment name.")
    patience: PositiveFloat = execution(20.0, doc="Seconds a finished run waits for MLflow before leaving it to sync.")


@group
class EngineConfig:
    """Where stages and shards are computed."""

    kind: Literal["local"] = execution("local", doc="This machine.")
    workers: NonNegative = execution(0, doc="Processes that map over shards; 0 takes one a core.")
    threads: NonNegative = execution(0, doc="Threads of numerical libraries in a stage; 0 takes one a core.")
    lease_seconds: PositiveFloat = execution(30.0, doc="A claim without heartbeat for this long is taken over.")


@group
class ScaleConfig:
    """Which bundle of sizes was chosen; the bundle itself overrides the other groups."""

    kind: Literal["laptop", "paper", "demo", "tiny"] = execution("laptop", doc="Bundle of sizes.")

