"""Scaffold-BPE: tokens that are rare once longer tokens took their occurrences leave the vocabulary.

Lian et al., *Scaffold-BPE* (arXiv 2404.17808), Algorithm 1. The expanded vocabulary E holds every token ever made;
V = E without the scaffold tokens S reaches the requested size. Its merges are those of BPE, carried further.
"""

from paribus.tokenization.learn.bpe import MergeTrainer, MergeTraining, Progress
from paribus.tokenization.learn.symbol_corpus import SymbolCorpus


def train_scaffold_bpe(
    corpus: SymbolCorpus, size: int, progress: Progress | None = None, *, threshold: int | None = None
) -> MergeTraining:
    """Merge as BPE does until `size` tokens that are no scaffolds are there, or the queue is empty.

    After each merge its two parents are looked at, the left one first: one that is no unit and whose live count fell
    below that of the queue's head becomes a scaffold and goes back into the queue under its live count, after pairs
    of that count. When it comes to the head it is normal again, at its old rank. Arguments as of `train_bpe`.
    """
    return MergeTrainer(corpus, size, scaffolding=True, threshold=threshold).run(progress)
