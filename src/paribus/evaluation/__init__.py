"""What a trained model is scored on, and the scores: benchmarks, bits per byte, translations, segmentation.

`suites` are the benchmarks, a file each; `borrowed` makes the same of lm-eval's tasks and of the user's own. The stage
`tasks` writes what is scored before any model is trained (`tasks`), in characters and words, so that every tokenizer of
a sweep gets the same. The stage `prompts` says what a tokenizer does with these (`prompts`: where tokens cross the
boundary of context and continuation). The stage `evaluation` (`scores`) loads the last checkpoints and asks them
(`models`): log-probabilities and texts for lm-eval's tasks, bits per byte of held-out documents and other sets of texts
(`text`), and measures of what was written and of tokenizers as word segmenters (`measures`). The stage
`token_statistics` counts what a tokenizer makes of the corpus; no run needs it.

Out comes a row for every checkpoint, task, item and metric, never a mean alone: significance needs the items. Up to
rounding, a score does not depend on the batch it was computed in. No stage asks a
network: benchmarks of `evaluation.source=hub` are fetched by the command, before the first one.

The promised names load on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.evaluation.segmentation import segmentation_scores
    from paribus.tokenization.statistics import corpus_statistics

__all__ = ["corpus_statistics", "segmentation_scores"]


def __getattr__(name: str) -> Any:
    if name == "segmentation_scores":
        from paribus.evaluation.segmentation import segmentation_scores

        return segmentation_scores
    if name == "corpus_statistics":
        from paribus.tokenization.statistics import corpus_statistics

        return corpus_statistics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
