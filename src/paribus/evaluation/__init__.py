"""Tasks and texts that models are scored on, and the scores: benchmarks, bits per byte, translations, segmentation.

`benchmarks` are ours; the `lm_eval_*` files make the same of lm-eval's tasks and of the user's own. The stage `tasks`
writes what is scored before any model is trained, in characters and words, so that every tokenizer of a sweep gets the
same. The stage `prompts` says what a tokenizer does with these: where tokens cross the boundary of context and
continuation. The stage `evaluation` (`evaluate`) loads the last checkpoints and asks them: log-probabilities
(`scoring`) and texts (`generation`) for lm-eval's tasks, bits per byte of held-out documents and other sets of texts
(`text`, `text_sets`), translations (`translation`), and scores of tokenizers as word segmenters (`segmentation`). The
stage `token_statistics` counts what a tokenizer makes of the corpus; no run needs it.

The stage `finetuning_data` (`scrolls`) reads the files of all tasks of fine-tuning before anything is trained. The
stage `finetuning` (`tune`) takes the last checkpoint of a training, tunes it on a task after the other, and lets it
answer.

Out comes a row for every checkpoint, task, item and metric, never a mean alone: significance needs the items. Up to
rounding, a score does not depend on the batch it was computed in. No stage asks a network: benchmarks of
`evaluation.source=hub` are fetched by the command, before the first one.

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
