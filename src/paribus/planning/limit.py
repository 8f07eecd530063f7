"""`plan.max_device_hours`: what is over it is refused before anything runs."""

from collections.abc import Sequence

from paribus.config.validate import Problem, refuse
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.plan import Plan, make_plan
from paribus.planning.throughput import Say

PATH = "plan.max_device_hours"


def refuse_over_limit(runs: Sequence[PreparedRun], say: Say) -> None:
    """ConfigurationError where the runs of a command may not take as long as they would; nothing without a limit."""
    if runs[0].job.config.plan.max_device_hours is not None:
        check_limit(make_plan(runs, say))


def check_limit(plan: Plan) -> None:
    """ConfigurationError, naming figure and limit, for a plan over its limit and for one that cannot be judged."""
    limit = plan.config.max_device_hours
    if limit is None:
        return
    hours = plan.device_hours
    if hours is None:
        raise refuse([Problem(PATH, f"{limit:g} cannot be judged: {_unknown(plan)}")])
    if hours.value > limit:
        number = len(plan.trainings)
        trainings = "training takes" if number == 1 else "trainings take"
        what = f"{limit:g}, but {number} {trainings} {hours} device-hours"
        raise refuse([Problem(PATH, f"{what}; run less, or raise the limit")])


def _unknown(plan: Plan) -> str:
    """Why the hours of some trainings are not known, and what to do."""
    sources = dict.fromkeys(run.throughput.source for run in plan.trainings if run.hours is None)
    return f"{'; '.join(sources)}; state the speed with plan.device=h800 plan.utilisation=0.4, or leave the limit out"
