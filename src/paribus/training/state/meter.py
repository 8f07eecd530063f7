"""Counts what training has read and what that cost, and tells the metrics file and the reporter about each step."""

import math
import time
from dataclasses import dataclass, field

from paribus.config.units import format_hours, format_size
from paribus.stage import Reporter
from paribus.training.data.batches import Batches, Integers
from paribus.training.data.budget import Budget, amount_of
from paribus.training.state.metrics import MetricsFile
from paribus.training.state.spent import Spent


@dataclass
class Meter:
    """Counts steps, tokens, text, FLOPs, epochs and device-hours, and reports them with what a step says of itself.

    The metrics file gets, every step, what the run's identity determines; the reporter gets, every `log_every` steps,
    that, the loss in bits per byte of the step's text, and what depends on the device: tokens a second, device-hours,
    and the utilisation where the device is known.
    """

    budget: Budget
    batches: Batches
    targets: Integers
    """Tokens that each context predicts, int64 (count,)."""
    text_bytes: Integers
    """Bytes of source text of the targets of each context, int64 (count,)."""
    metrics: MetricsFile
    report: Reporter
    log_every: int
    """Steps between two reports."""
    devices: int = 1
    peak_flops: float | None = None
    """FLOP/s that one device can do at most; None where that is not known."""
    _tokens: int = field(default=0, init=False)
    _text: int = field(default=0, init=False)
    _before: Spent = field(default=Spent(), init=False)
    _began: float = field(default=0.0, init=False)
    _since: tuple[float, int, int] = field(default=(0.0, 0, 0), init=False)
    """Time, tokens and steps of the last report."""

    def begin(self, step: int, before: Spent) -> None:
        """`step` steps are done, which took what is `before`."""
        contexts = step * self.batches.global_batch
        self._tokens = amount_of(contexts, self.batches, self.targets)
        self._text = amount_of(contexts, self.batches, self.text_bytes)
        now = time.monotonic()
        self._before, self._began, self._since = before, now, (now, self._tokens, step)
        self._progress(step, now)

    def record(self, step: int, indices: Integers, *, loss: float, rate: float, norm: float, skipped: int) -> None:
        """Step `step` (1-based) is done and read the contexts `indices`; `skipped` steps so far changed nothing."""
        tokens, text = int(self.targets[indices].sum()), int(self.text_bytes[indices].sum())
        self._tokens += tokens
        self._text += text
        values = {
            "train/loss": loss,
            "train/learning_rate": rate,
            "train/gradient_norm": norm,
            "train/tokens": self._tokens,
            "train/text_bytes": self._text,
            "train/flops": self._flops(step),
            "train/epochs": step * self.batches.global_batch / self.batches.contexts_an_epoch,
        }
        if skipped:
            values["train/skipped_steps"] = skipped
        values = {name: value for name, value in values.items() if math.isfinite(value)}
        now = time.monotonic()
        self.metrics.append(step, values)
        self._progress(step, now)
        if step % self.log_every == 0 or step == self.budget.steps:
            bits = {"train/bits_per_byte": loss * tokens / (text * math.log(2))} if text and math.isfinite(loss) else {}
            self._publish(step, values | bits | self._measured(step, now))
            self._since = now, self._tokens, step

    def _flops(self, steps: int) -> int:
        return self.budget.flops // self.budget.steps * steps

    def _hours(self, now: float) -> float:
        return self._before.later(now - self._began, self.devices).device_hours

    def _progress(self, step: int, now: float) -> None:
        detail = (
            f"{format_size(self._text)} · {_short(self._flops(step))} FLOPs · step {step:,} of {self.budget.steps:,} · "
            f"{format_hours(self._hours(now))} device-hours"
        )
        self.report.progress(self._tokens, self.budget.tokens, unit="tokens", doing="taking steps", detail=detail)

    def _measured(self, step: int, now: float) -> dict[str, float]:
        """What depends on the device; speeds are those since the last report."""
        since, tokens, steps = self._since
        seconds = max(now - since, 1e-9)
        measured = {
            "train/tokens_per_second": (self._tokens - tokens) / seconds,
            "train/device_hours": self._hours(now),
        }
        if self.peak_flops is not None:
            possible = self.peak_flops * self.devices * seconds
            measured["train/model_flops_utilization"] = self._flops(step - steps) / possible
        return measured

    def _publish(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.report.metric(name, value, step=step)


def _short(flops: int) -> str:
    return f"{flops:.1e}".replace("e+", "e")
