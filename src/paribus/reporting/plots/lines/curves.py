"""Learning curves: training loss in bits per byte of text, against what was read and computed."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paribus.reporting.plots.looks import looks_of
from paribus.reporting.plots.marks import mark
from paribus.reporting.plots.picture import Plot, picture
from paribus.reporting.table.comparison import Comparison, ComparisonRow
from paribus.reporting.table.frame import RunRecord

EVENTS, LOSS = "events.jsonl", "train/loss"
_AXES = {"train/tokens": "tokens read", "train/text_bytes": "bytes of text read", "train/flops": "FLOPs"}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_POINTS = 400
"""Points of a curve that a picture can show."""

LEARNING_CURVES = "learning_curves"
"""Name of the picture."""


@dataclass(frozen=True)
class Curve:
    """What a run logged while training: equally long sequences."""

    steps: Sequence[int]
    losses: Sequence[float]
    """Nats a token."""
    amounts: Mapping[str, Sequence[float]]
    """`train/tokens`, `train/text_bytes`, `train/flops` so far; empty where a run did not say."""

    @property
    def convertible(self) -> bool:
        """Whether tokens and bytes are known, so that the loss has a unit that vocabularies share."""
        return all(self.amounts.get(name) for name in ("train/tokens", "train/text_bytes"))


def read_curves(runs: Sequence[RunRecord]) -> dict[str, Curve]:
    """Curves from the runs' events, by run id; runs without events have none."""
    curves = {run.run_id: _read(run) for run in runs}
    return {run_id: curve for run_id, curve in curves.items() if curve is not None}


def learning_curves(comparison: Comparison, rows: Sequence[ComparisonRow], curves: Mapping[str, Curve]) -> Plot | None:
    """Lines against tokens, bytes and FLOPs, a row's mean and thin its runs; without those, the loss against steps."""
    shown = [
        (row, run, curves[run.run_id])
        for row in rows
        for run in row.runs
        if run.run_id in curves and len(curves[run.run_id].steps) > 1
    ]
    if not shown:
        return None
    convertible = all(curve.convertible for _, _, curve in shown)
    names = [name for name in _AXES if all(curve.amounts.get(name) for _, _, curve in shown)] if convertible else []
    powers = {name: _power(max(curve.amounts[name][-1] for _, _, curve in shown)) for name in names}
    lines = {name: _lines(shown, name, powers[name][0] if name else 1.0) for name in names or [""]}
    unit = "bits per byte" if names else "nats per token"

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(lines), sharey=True, squeeze=False)[0]
        for panel, (name, drawn) in zip(panels, lines.items(), strict=True):
            for line in drawn:
                _draw(panel, line, comparison, named=panel is panels[0])
            panel.set_xlabel(f"{_AXES[name]}{powers[name][1]}" if name else "step")
        panels[0].set_ylabel(f"training loss ({unit})")
        figure.legend(loc="outside lower center", fontsize=9, ncols=3 if len(rows) > 4 else 2)

    told = "in bits per byte of the text read" if names else "in nats per token, not comparable between vocabularies"
    several = any(line.run is None for drawn in lines.values() for line in drawn)
    what = "a row's mean over seeds, and thin each of its runs" if several else "a line a run"
    what += _looks(comparison)
    caption = f"Training loss {told}, running mean over a tenth of a run; {what}."
    ends = "; ".join(
        f"{comparison.row_name(line.row)} (seed {line.run.seed}) ends at {line.y[-1]:.3f}"
        for line in next(iter(lines.values()))
        if line.run is not None
    )
    height = 3.6 + 0.2 * math.ceil(len(rows) / (3 if len(rows) > 4 else 2))
    return picture(LEARNING_CURVES, caption, f"{caption} {ends}.", (9.2, height), draw)


def _looks(comparison: Comparison) -> str:
    """What colours and dashes stand for, where it is not the same."""
    coloured, shaped = looks_of(comparison).told
    if coloured is None or not shaped:
        return ""
    return f"; colours by {comparison.name(coloured)}, dashes by {' and '.join(map(comparison.name, shaped))}"


@dataclass(frozen=True)
class _Line:
    """Of one run, or the mean of a row's runs, where `run` is None."""

    row: ComparisonRow
    run: RunRecord | None
    x: Sequence[float]
    y: Sequence[float]
    beside: bool = False
    """Whether the mean of its row is drawn too."""
    first: bool = True
    """Whether the legend has it for its row."""


def _lines(shown: Sequence[tuple[ComparisonRow, RunRecord, Curve]], name: str, scale: float) -> list[_Line]:
    """Those of runs first, so that means lie above them. Runs of other steps, such as unfinished ones, have none."""
    runs, means = [], []
    for _, found in itertools.groupby(shown, key=lambda each: each[0].labels):
        group = list(found)
        # Lines of many steps have about as many points as those of a few.
        averaged = len(group) > 1 and len({tuple(curve.steps) for _, _, curve in group}) == 1
        own = [
            _Line(row, run, *_line(curve, name, scale), averaged, first=not averaged and place == 0)
            for place, (row, run, curve) in enumerate(group)
        ]
        runs += own
        if averaged:
            x = [fmean(at) for at in zip(*(line.x for line in own), strict=True)]
            y = [fmean(at) for at in zip(*(line.y for line in own), strict=True)]
            means.append(_Line(group[0][0], None, x, y))
    return runs + means


def _draw(panel: Axes, line: _Line, comparison: Comparison, *, named: bool) -> None:
    look, name = looks_of(comparison).of(line.row.labels), comparison.row_name(line.row)
    drawn = panel.plot(
        line.x,
        line.y,
        linestyle="-" if line.beside else look.dashes,
        color=look.colour,
        linewidth=0.6 if line.beside else 1.6,
        alpha=0.45 if line.beside else None,
        label=name if named and line.first else None,
    )
    whose = "mean over seeds" if line.run is None else f"seed {line.run.seed}, run {line.run.run_id[:8]}"
    mark(drawn, f"{name}, {whose}", comparison.place(line.row))


def _read(run: RunRecord) -> Curve | None:
    """Metrics of training only: most lines of a log are others, and need not be parsed."""
    path = run.directory / EVENTS
    if not path.is_file():
        return None
    found: dict[str, dict[int, float]] = {name: {} for name in (LOSS, *_AXES)}
    wanted = tuple(f'"{name}"'.encode() for name in found)
    for line in path.read_bytes().splitlines():
        if not any(name in line for name in wanted):
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("event") == "metric" and event.get("name") in found and math.isfinite(event["value"]):
            found[event["name"]][int(event["step"])] = float(event["value"])
    steps = sorted(found[LOSS])
    amounts = {
        name: [found[name][step] for step in steps]
        for name in _AXES
        if steps and all(step in found[name] for step in steps)
    }
    return Curve(steps, [found[LOSS][step] for step in steps], amounts) if steps else None


def _power(largest: float) -> tuple[float, str]:
    """A power of a thousand by which amounts up to `largest` are small numbers, and what an axis says of it."""
    power = 3 * max(0, int(math.log10(largest) // 3)) if largest > 0 else 0
    return 10.0**-power, f" (10{str(power).translate(_RAISED)})" if power else ""


def _line(curve: Curve, name: str, scale: float) -> tuple[list[float], list[float]]:
    """Running means over a tenth of the points, at their last one, over `scale` times an amount; batches are noise."""
    window = max(1, len(curve.losses) // 10)
    sums = list(itertools.accumulate(curve.losses, initial=0.0))
    places = range(window - 1, len(curve.losses), max(1, len(curve.losses) // _POINTS))
    means = [(sums[place + 1] - sums[place + 1 - window]) / window for place in places]
    if not name:
        return [float(curve.steps[place]) for place in places], means
    factors = [_bits_per_nat(curve, place, window) for place in places]
    x = [scale * curve.amounts[name][place] for place in places]
    return x, [mean * factor for mean, factor in zip(means, factors, strict=True)]


def _bits_per_nat(curve: Curve, place: int, window: int) -> float:
    """Bits a byte for a nat a token in the text of a window, from the tokens and bytes that were read in it."""
    tokens, size = curve.amounts["train/tokens"], curve.amounts["train/text_bytes"]
    before = place - window
    read = tokens[place] - (tokens[before] if before >= 0 else 0.0)
    text = size[place] - (size[before] if before >= 0 else 0.0)
    return read / text / math.log(2) if text > 0 else math.nan
