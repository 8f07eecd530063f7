"""The stages beside training: hours before it of this machine and after it of a device, and room for encoded text."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paribus.config.groups.packing import PairPacking
from paribus.config.groups.tokenization import draws_of
from paribus.ordering.contexts.sample import SAMPLED
from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.stages import EVALUATION, Place
from paribus.planning.hours import SECONDS, Hours
from paribus.planning.length import corpus_text, known_text, known_vocabulary_size, sized
from paribus.planning.machine import trains_on_gpu
from paribus.planning.scoring import scoring_work
from paribus.planning.stage_times import ITEMS_OF, StageTimes
from paribus.planning.throughput import Throughput

SHORT_IDS = 65_536
"""Tokens of a vocabulary up to which ids are stored in two bytes each, and in four above."""
INTEGER = 8
"""Bytes of an entry of all other arrays."""
CONTEXT_ARRAYS = 4
"""Arrays of the artefact `contexts` with an entry a context, or a pair."""


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
class Encoded:
    """Room on the disk for the missing artefacts `tokens` and `contexts`: draws take it as often as they are.

    BPE-dropout makes more tokens than it is estimated by, BPE's.
    """

    tokens: int = 0
    """Bytes of `tokens` whose corpus is there, estimated as its tokens are."""
    contexts: int = 0
    """Bytes of `contexts`, most of them the sampled bytes of the corpus."""
    draws: int = 1
    """The most draws of BPE-dropout that one of them has."""
    unknown: bool = False
    """Whether nothing says how much text another one has, as its corpus is not there."""

    @classmethod
    def of(cls, nodes: Mapping[Place, tuple[PreparedRun, Node]], root: OutputRoot) -> "Encoded":
        """Of the missing `nodes`."""
        made = {
            name: [run for (stage, _), (run, _) in nodes.items() if stage == name] for name in ("tokens", "contexts")
        }
        sizes = [_tokens_bytes(run, root) for run in made["tokens"]]
        return cls(
            tokens=sum(size for size in sizes if size is not None),
            contexts=sum(_contexts_bytes(run, root) for run in made["contexts"]),
            draws=max((draws_of(run.job.config.encoder) for run in made["tokens"]), default=1),
            unknown=None in sizes,
        )


def _tokens_bytes(run: PreparedRun, root: OutputRoot) -> int | None:
    """Ids of each draw, their bounds, and of pairs the lengths of sources; bytes of the text once."""
    text, config = corpus_text(run, root), run.job.config
    if text is None:
        return None
    ends = text["documents"] * (2 if "target_bytes" in text else 1)
    tokens = text["bytes"] / known_text(run, root).bytes_per_token - ends
    wide = known_vocabulary_size(config, run.nodes["vocabulary"], root).value > SHORT_IDS
    bounds = INTEGER * ends
    size: int = round(draws_of(config.encoder) * (tokens * (4 if wide else 2) + bounds))
    return size + INTEGER * int(text["documents"])


def _contexts_bytes(run: PreparedRun, root: OutputRoot) -> int:
    """The arrays of `Measured`: of each draw entries of a context and two a sampled byte; 0 without a corpus."""
    text, config = corpus_text(run, root), run.job.config
    if text is None:
        return 0
    known = known_text(run, root)
    length = sized(config, known).model.context_length * known.bytes_per_token
    contexts = text["documents"] if isinstance(config.packing, PairPacking) else math.ceil(text["bytes"] / length)
    entries = int(CONTEXT_ARRAYS * contexts + 2 * min(SAMPLED, text["bytes"]))
    return draws_of(config.encoder) * entries * INTEGER


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
    encoded: Encoded
    """Room for what is encoded before training."""

    @classmethod
    def of(
        cls,
        runs: Sequence[PreparedRun],
        missing: Iterable[Place],
        throughputs: Mapping[str, Throughput],
        root: OutputRoot,
    ) -> "OtherStages":
        """Of the (stage, key) that are `missing`; `throughputs` are those of training by their key."""
        wanted, times = set(missing), StageTimes(root)
        nodes = {node.place: (run, node) for run in runs for node in run.wanted.values()}
        nodes = {place: found for place, found in nodes.items() if place in wanted and place[0] != "training"}
        before, after = list[tuple[str, _Estimate | None]](), list[tuple[str, _Estimate | None]]()
        for run, node in nodes.values():
            if node.name in ITEMS_OF:
                speed = throughputs[run.nodes["training"].key]
                after.append((node.name, _after(run, node, times, speed, root)))
            else:
                seconds = times.seconds(node)
                before.append((node.name, None if seconds is None else _Estimate(seconds / SECONDS)))
        return cls(_summed(before), _summed(after), Encoded.of(nodes, root))


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
    gpu = config.plan.device is not None or trains_on_gpu(config.training)
    work = scoring_work(sized(config, text), tasks.record(), vocabulary.value, text.bytes_per_token, gpu=gpu)
    hours = speed.hours(work.flops)
    return None if hours is None else _Estimate(hours.value + work.seconds / SECONDS, timed=False, whole=work.whole)
