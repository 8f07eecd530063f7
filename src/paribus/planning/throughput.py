"""The speed of training that hours are reckoned from: stated, or of a probe."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.plan import PlanConfig
from paribus.config.identity import digest
from paribus.config.schema import RunConfig
from paribus.config.units import format_count
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.pipeline.output_root import OutputRoot
from paribus.planning.hours import SECONDS, Hours
from paribus.planning.machine import trains_on_gpu
from paribus.planning.probe import Probe, ProbeError, measure, probe_key, read_probe
from paribus.training.fit.peaks import peak_flops

Say = Callable[[str], None]
NOT_PROBED = "not probed yet"
NEVER_PROBED = "no probe measures an encoder-decoder"


@dataclass(frozen=True)
class Throughput:
    """How fast one device trains a model shape, and how that is known."""

    flops: float | None
    """Training FLOP/s; None where nothing says."""
    source: str
    error: float | None = None
    """Relative half-width of what was measured; None for what was stated."""

    def hours(self, flops: float) -> Hours | None:
        """Hours of one device for FLOPs."""
        return None if self.flops is None else Hours(flops / self.flops / SECONDS, self.error)


@dataclass
class Throughputs:
    """Speeds of the shapes of a command, each found once; `say` is told before something takes its time."""

    root: OutputRoot
    say: Say
    _found: dict[str, Throughput] = field(default_factory=dict, init=False)

    def of(self, config: RunConfig, vocabulary: int) -> Throughput:
        """The speed at which `config` trains a model with `vocabulary` tokens."""
        plan = config.plan
        if is_stated(plan):
            return stated(plan)
        key = probe_key(config, vocabulary)
        place = digest(key)
        if place not in self._found:
            self._found[place] = self._probed(config, vocabulary, key)
        return self._found[place]

    def _probed(self, config: RunConfig, vocabulary: int, key: dict[str, Any]) -> Throughput:
        shape = shape_name(config, vocabulary)
        remembered = read_probe(self.root.cache, key)
        if remembered:
            return _measured(config, vocabulary, remembered, f"probed {remembered.when}, remembered")
        if config.plan.throughput != "probe" and config.plan.max_device_hours is None:
            unlike = isinstance(config.model, EncoderDecoderModel)
            return Throughput(None, f"{shape}: {NEVER_PROBED if unlike else NOT_PROBED}")
        self.say(f"probing {shape} on this machine: about {config.plan.probe_seconds:.0f} s of training steps")
        try:
            probe = measure(config, vocabulary, self.root.cache, self.say)
            return _measured(config, vocabulary, probe, "probed now")
        except ProbeError as error:
            return Throughput(None, f"{shape} cannot be probed here: {error}")


def is_stated(plan: PlanConfig) -> bool:
    """Whether speed is a share of a peak and not what this machine does."""
    asked = plan.throughput == "auto" and (plan.device is not None or plan.peak_tflops is not None)
    return plan.throughput == "stated" or asked


def stated(plan: PlanConfig) -> Throughput:
    """`plan.utilisation` of the peak."""
    known = peak_flops(plan.device) if plan.device else None
    peak = plan.peak_tflops * 1e12 if plan.peak_tflops is not None else known
    assert peak is not None, "configurations without a peak are refused"
    name = plan.device or "a device"
    source = f"stated: {plan.utilisation:.0%} (plan.utilisation) of the {peak / 1e12:g} TFLOP/s of {name}"
    return Throughput(plan.utilisation * peak, source.replace("%", " %"))


def shape_name(config: RunConfig, vocabulary: int) -> str:
    """A model shape for people."""
    parameters = format_count(parameter_count(config.model, vocabulary))
    return f"{config.model.kind} of {parameters} parameters, {config.model.context_length:,} tokens a context"


def _measured(config: RunConfig, vocabulary: int, probe: Probe, when: str) -> Throughput:
    flops = training_flops(config.model, vocabulary, probe.tokens) / probe.tokens * probe.tokens_per_second
    where = f"{probe.device}, {probe.precision}, micro-batch {probe.micro_batch}"
    speed = f"{probe.tokens_per_second:,.0f} tokens/s ± {probe.error:.0%}".replace("%", " %")
    threads = "" if trains_on_gpu(config.training) else f", {probe.threads} thread{'s' if probe.threads > 1 else ''}"
    reckoned = ""
    if len(probe.layers) > 1:
        reckoned = f", reckoned from {' and '.join(map(str, probe.layers))} layers, without what processes exchange"
    source = f"{shape_name(config, vocabulary)}: {speed} on {where}{threads}{reckoned}; {when}"
    return Throughput(flops, source, probe.error)
