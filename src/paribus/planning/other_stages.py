"""Hours of the stages beside training: before it those of this machine, after it those of a device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.stages import EVALUATION
from paribus.planning.hours import SECONDS, Hours
from paribus.planning.length import known_text, known_vocabulary_size, sized
from paribus.planning.scoring import scoring_work
from paribus.planning.stage_times import ITEMS_OF, StageTimes
from paribus.planning.throughput import Throughput


@dataclass(frozen=True)
class StageHours:
    """Of the missing artefacts of some stages."""

    hours: Hours
    """Of those whose hours are known."""
    known: tuple[str, ...]
    """The stages of these, a name each."""
    unknown: tuple[str, ...]
    """The stages of the others, a name each."""
    timed: bool = True
    """Whether hours are what such stages took in this output root, and not FLOPs over speed."""
    whole: bool = True
    """Whether nothing of a known one was left out."""


@dataclass(frozen=True)
class _Estimate:
    hours: float
    timed: bool = True
    whole: bool = True


@dataclass(frozen=True)
class OtherStages:
    """All missing artefacts but those of training."""

    before: StageHours
    """Hours of this machine before training."""
    after: StageHours
    """Device-hours of evaluation and fine-tuning."""

    @classmethod
    def of(
        cls,
        runs: Sequence[PreparedRun],
        missing: Iterable[tuple[str, str]],
        throughputs: Mapping[str, Throughput],
        root: OutputRoot,
    ) -> "OtherStages":
        """Of the (stage, key) that are `missing`; `throughputs` are those of training by their key."""
        wanted, times = set(missing), StageTimes(root)
        nodes = {(node.name, node.key): (run, node) for run in runs for node in run.wanted.values()}
        before, after = list[tuple[str, _Estimate | None]](), list[tuple[str, _Estimate | None]]()
        for place, (run, node) in nodes.items():
            if place not in wanted or node.name == "training":
                continue
            if node.name in ITEMS_OF:
                speed = throughputs[run.nodes["training"].key]
                after.append((node.name, _after(run, node, times, speed, root)))
            else:
                seconds = times.seconds(node)
                before.append((node.name, None if seconds is None else _Estimate(seconds / SECONDS)))
        return cls(_summed(before), _summed(after))


def _summed(estimates: Sequence[tuple[str, _Estimate | None]]) -> StageHours:
    known = [estimate for _, estimate in estimates if estimate is not None]
    return StageHours(
        hours=Hours(sum(estimate.hours for estimate in known)),
        known=tuple(name for name, estimate in estimates if estimate is not None),
        unknown=tuple(name for name, estimate in estimates if estimate is None),
        timed=all(estimate.timed for estimate in known),
        whole=all(estimate.whole for estimate in known),
    )


def _after(run: PreparedRun, node: Node, times: StageTimes, speed: Throughput, root: OutputRoot) -> _Estimate | None:
    """As such stages took here, unless the plan is for another device; else forward FLOPs at the speed of training."""
    config = run.job.config
    seconds = times.seconds(node) if config.plan.device is None else None
    if seconds is not None:
        return _Estimate(seconds / SECONDS)
    tasks = root.store.find("tasks", node.inputs["tasks"].key) if node.name == EVALUATION else None
    if tasks is None:
        return None
    vocabulary, text = known_vocabulary_size(config, run.nodes["vocabulary"], root), known_text(run, root)
    work = scoring_work(sized(config, text), tasks.record(), vocabulary.value, text.bytes_per_token)
    hours = speed.hours(work.flops)
    return None if hours is None else _Estimate(hours.value, timed=False, whole=work.whole)
