"""Counts what training has read, and tells the metrics file and the reporter about each step."""

import time
from dataclasses import dataclass

from paribus.pipeline.context import Reporter
from paribus.training.batches import Batches, Integers
from paribus.training.budget import Budget, amount_of
from paribus.training.metrics import MetricsFile


def device_hours(seconds: float, devices: int) -> float:
    """Hours of training summed over the devices, a process each."""
    return seconds * devices / 3600


@dataclass
class Meter:
    """Counts tokens and text, and reports them with what a step says of itself."""

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

    def begin(self, step: int) -> None:
        """`step` steps are done."""
        contexts = step * self.batches.global_batch
        self._tokens = amount_of(contexts, self.batches, self.targets)
        self._text = amount_of(contexts, self.batches, self.text_bytes)
        self._since, self._since_tokens = time.monotonic(), self._tokens
        self._progress()

    def record(self, step: int, indices: Integers, *, loss: float, rate: float, norm: float) -> None:
        """Step `step` (1-based) is done and read the contexts `indices`."""
        self._tokens += int(self.targets[indices].sum())
        self._text += int(self.text_bytes[indices].sum())
        values = {
            "train/loss": loss,
            "train/learning_rate": rate,
            "train/gradient_norm": norm,
            "train/tokens": self._tokens,
            "train/text_bytes": self._text,
        }
        self.metrics.append(step, values)
        self._progress()
        if step % self.log_every == 0 or step == self.budget.steps:
            self._publish(step, values)

    def _progress(self) -> None:
        self.report.progress(self._tokens, self.budget.tokens, unit="tokens", doing="training")

    def _publish(self, step: int, values: dict[str, float]) -> None:
        now = time.monotonic()
        speed = (self._tokens - self._since_tokens) / max(now - self._since, 1e-9)
        for name, value in (values | {"train/tokens_per_second": speed}).items():
            self.report.metric(name, value, step=step)
        self._since, self._since_tokens = now, self._tokens
