"""The tables of what was measured."""

from collections.abc import Iterator
from typing import Any

from tables import number, spread, table

from loops.results import CHECKPOINTED, REFERENCE, TOLERANCE, Results
from loops.results import spread as interval

NAMES = {
    "bare": "bare step",
    "bare_logits": "bare step, all logits",
    "paribus": "paribus",
    "trainer": "Trainer",
    "trainer_compiled": "Trainer, compiled",
}
ORDER = tuple(NAMES)
PARTS = ("data", "metrics", "checkpoints")


def report(results: list[Results], device: dict[str, Any], every: int) -> str:
    """All tables, and what was left out."""
    speed = table(
        ["shape", "loop", "s a step", "to bare", "CPU s", "tokens/s", "utilisation %", "peak GiB", "losses differ by"],
        [row for one in results for row in _speed(one, device["peak"])],
    )
    outside = table(
        ["shape", "waiting for data %", "metrics %", "other %", "outside the step %"],
        [row for one in results for row in _outside(one)],
    )
    saving = table(
        ["shape", "s a step without", f"with a checkpoint each {every}", "cost %", "of it in the loop %", "peak GiB"],
        [row for one in results for row in _saving(one)],
    )
    left_out = "".join(f"{one.shape.name} was left out: {one.problem}.\n" for one in results if one.problem)
    return f"{speed}\n{outside}\n{saving}\n{left_out}"


def _speed(one: Results, peak: float) -> Iterator[list[str]]:
    for name in sorted(set(one.answers) & set(NAMES), key=ORDER.index):
        if name not in one.measured:
            yield [_described(one), NAMES[name], f"**{one.problem_of(name)}**", *[""] * 6]
            continue
        rate, memory, difference = one.tokens_per_second(name), one.peak(name), one.difference(name)
        yield [
            _described(one),
            NAMES[name],
            spread(one.windows(name)),
            _ratio(one, name),
            f"{one.processor_seconds(name):.3g}",
            number(rate),
            f"{100 * rate * one.flops / peak:.1f}",
            "" if memory is None else f"{memory / 2**30:.2f}",
            "" if difference is None else _difference(difference, TOLERANCE[one.precision]),
        ]


def _described(one: Results) -> str:
    shape = one.shape
    again = ", activations again" if shape.checkpointing else ""
    size = f"{shape.vocab_size:,} tokens, {shape.global_batch} x {shape.context_length}"
    return f"{shape.name} ({size}, micro-batch {shape.micro_batch}{again})"


def _ratio(one: Results, name: str) -> str:
    if REFERENCE not in one.measured:
        return ""
    median, low, high = interval(one.ratios(name))
    return f"{median:.3f} ({low:.3f}-{high:.3f})"


def _difference(value: float, tolerance: float) -> str:
    return f"{value:.0e}" if value <= tolerance else f"**{value:.0e}**"


def _outside(one: Results) -> Iterator[list[str]]:
    if "paribus" in one.measured:
        data, metrics, step = (one.share("paribus", part) for part in ("data", "metrics", "step"))
        shares = (data, metrics, 1 - data - metrics - step, 1 - step)
        yield [one.shape.name, *(f"{100 * share:.2f}" for share in shares)]


def _saving(one: Results) -> Iterator[list[str]]:
    if {one.unsaved, CHECKPOINTED} <= set(one.measured):
        without, saving = one.mean_seconds(one.unsaved), one.mean_seconds(CHECKPOINTED)
        memory = one.peak(CHECKPOINTED)
        yield [
            one.shape.name,
            f"{without:.3g}",
            f"{saving:.3g}",
            f"{100 * (saving / without - 1):.1f}",
            f"{100 * one.share(CHECKPOINTED, 'checkpoints'):.1f}",
            "" if memory is None else f"{memory / 2**30:.2f}",
        ]
