"""A view of MLflow's list of runs that has the arms of all sweeps with their scores, the fewest bits per byte first.

By itself MLflow shows sweeps, collapsed, without a number, and MLflow 3 opens its views of applications. What a link
shows is kept with the experiment: columns, order and filter. Sorted by a metric, runs stand beside and not below each
other.
"""

import json
from collections.abc import Collection, Iterable, Mapping

KIND_TAGS: Mapping[str, str] = {"mlflow.experimentKind": "custom_model_development"}
"""What an experiment is, for the versions of MLflow 3 that ask it and not the address."""
VIEW = "paribus"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
_FIRST = "bits_per_byte"
SWEEP_TAG, HELDOUT_TAG = TAGS = ("paribus.sweep", "paribus.heldout")
"""Scores of one name compare only within one held-out text."""
_MOST = 40
"""Columns, so that a tag of an experiment, 5,000 characters, has room for all."""
_METRICS, _COLUMNS = "metrics.`", "selectedColumns"


def scores_among(metrics: Iterable[str]) -> set[str]:
    """Names without a section: `boolq`, not `train/loss`."""
    return {name for name in metrics if "/" not in name}


def with_columns(view: str | None, scores: Collection[str]) -> str:
    """The view, as the tag has it, with columns for these scores beside those that it has already."""
    known = json.loads(view)[_COLUMNS] if view else []
    shown = {column.removeprefix(_METRICS)[:-1] for column in known if column.startswith(_METRICS)} | set(scores)
    first = sorted(shown, key=lambda name: (name != _FIRST, name))[:_MOST]
    return json.dumps(
        {
            _COLUMNS: [
                *(f"{_METRICS}{name}`" for name in first),
                "attributes.`User`",
                *(f"tags.`{tag}`" for tag in TAGS),
            ],
            "orderByKey": f"{_METRICS}{_FIRST}`",
            "orderByAsc": True,
            "searchFilter": "tags.`paribus.run_id` LIKE '%'",
        }
    )


def page(experiment_id: str) -> str:
    """Where the view is, below the address of MLflow."""
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={VIEW}"
