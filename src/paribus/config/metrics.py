"""The few numbers by which a run is known: bits per byte, and each task by the metric that tables take."""

import re
from collections.abc import Collection, Mapping
from statistics import fmean

BITS = "bits_per_byte"
PREFERRED = (
    "acc", "exact_match", "em", "f1", "acc_norm", "acc_bytes", "precision", "recall", "mcc", "bleu", "tokenized_bleu",
    "chrf", "rouge_geometric_mean", "rouge1", "rouge2", "rougeL", "bits_per_byte", "choice_bits", "target_bits",
    "perplexity", "word_f1", "word_precision", "word_recall",
)  # fmt: skip
"""Metrics that a task is rather known by first; tables have the same rule."""
SCORE = re.compile(r"eval/(?P<task>.+)/(?P<shots>\d+)shot/(?P<metric>[^/]+)")


def main_scores(metrics: Mapping[str, float]) -> dict[str, float]:
    """Bits per byte of held-out text, then tasks by name, averaged over numbers of shots: those of logged `metrics`."""
    scores: dict[str, dict[str, list[float]]] = {}
    for name, value in metrics.items():
        if match := SCORE.fullmatch(name):
            scores.setdefault(match["task"], {}).setdefault(match["metric"], []).append(value)
    bits = {BITS: metrics[f"eval/{BITS}"]} if f"eval/{BITS}" in metrics else {}
    return bits | {task: fmean(of_task[choose_metric(of_task)]) for task, of_task in sorted(scores.items())}


def score_texts(scores: Mapping[str, float], most: int | None = None) -> list[str]:
    """Main scores in words, each in a text of its own; of more than `most`, how many are left unsaid."""
    texts = [f"{value:.4f} bits per byte" if name == BITS else f"{name} {value:.4g}" for name, value in scores.items()]
    if most is None or len(texts) <= most:
        return texts
    return [*texts[:most], f"{len(texts) - most} more"]


def choose_metric(available: Collection[str]) -> str:
    """The metric a task is known and reported by: accuracy where it has one, as the papers do."""
    return next((metric for metric in PREFERRED if metric in available), min(available))
