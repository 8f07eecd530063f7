"""Tasks, harness, bits per byte and intrinsic measures.

The promised names load on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.evaluation.measures.segmentation import segmentation_scores
    from paribus.tokenization.statistics import corpus_statistics

__all__ = ["corpus_statistics", "segmentation_scores"]


def __getattr__(name: str) -> Any:
    if name == "segmentation_scores":
        from paribus.evaluation.measures.segmentation import segmentation_scores

        return segmentation_scores
    if name == "corpus_statistics":
        from paribus.tokenization.statistics import corpus_statistics

        return corpus_statistics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
