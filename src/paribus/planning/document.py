"""A plan as plain data, for programs: the keys are described in docs/json.md."""

from collections.abc import Sequence
from typing import Any

from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.bill import bill
from paribus.planning.hours import Hours
from paribus.planning.plan import Plan, PlannedRun

_KEYS = {"disk": "disk_bytes", "memory": "memory_bytes"}
"""Names of figures that have another key here."""


def plan_document(plan: Plan, runs: Sequence[PreparedRun]) -> dict[str, Any]:
    """Everything that is shown of the plan of `runs`, in bytes, hours and whole numbers."""
    return {
        "stages": [
            {"name": stage.name, "key": stage.key, "state": stage.state, "runs": stage.runs} for stage in plan.stages
        ],
        "runs": [_run(planned, run) for planned, run in zip(plan.runs, runs, strict=True)],
        "until": plan.until,
        "left": {
            "trainings": len(plan.trainings),
            "flops": plan.flops,
            "device_hours": _hours(plan.device_hours),
            "wall_hours": plan.wall_hours,
            "checkpoint_bytes": plan.disk_bytes,
        },
        "devices": plan.devices,
        "bill": list(bill(plan)),
        "judgement": list(plan.judgement),
        "problems": list(plan.problems),
        "refusals": [str(error) for error in plan.refusals],
    }


def _run(planned: PlannedRun, run: PreparedRun) -> dict[str, Any]:
    length = planned.length
    return {
        "id": run.run_id,
        "label": planned.label,
        "training": {"key": planned.training.key, "state": planned.training.state},
        "tokens": length.tokens,
        "text_bytes": length.text_bytes,
        "steps": length.steps,
        "epochs": length.epochs,
        "parameters": planned.parameters,
        "flops": length.flops,
        "device_hours": _hours(planned.hours),
        "disk_bytes": planned.disk_bytes,
        "memory_bytes": planned.memory,
        "estimated": sorted(_KEYS.get(name, name) for name in length.estimated),
        "refused": planned.refused,
        "too_few": planned.too_few,
    }


def _hours(hours: Hours | None) -> float | None:
    return None if hours is None else hours.value
