"""Scaffold-BPE: tokens that are rare once longer tokens took their occurrences leave the vocabulary.

Lian et al., *Scaffold-BPE* (arXiv 2404.17808), Algorithm 1. The expanded vocabulary E holds every token ever made;
V = E without the scaffold tokens S reaches the requested size. Its merges are those of BPE, carried further.
"""

from paribus.tokenization.bpe import BPETrainer

_TOKEN = 1 << 64
"""Above every pair's key, so that a pair goes before a pushed-back token of equal count."""


class ScaffoldBPETrainer(BPETrainer):
    """BPE whose queue also holds pushed-back scaffold tokens, keyed by their live counts."""

    def step(self, key: int) -> None:
        """Pop the head: a pushed-back token becomes normal again at its old rank; a pair is merged."""
        if key >= _TOKEN:
            self._readmit(key - _TOKEN)
        else:
            super().step(key)

    def merge(self, left: int, right: int) -> int:
        """Merge a pair, then demote those of its two tokens that fell below the head of the queue."""
        token = super().merge(left, right)
        for rank in (token, left, right):
            if self.scaffold[rank]:
                self.queue.set(_TOKEN + rank, self.live[rank])
        if self.scaffold[token] and self.live[token] >= self._head_count():
            self._readmit(token)
        self._demote(left)
        self._demote(right)
        return token

    def _head_count(self) -> int:
        head = self.queue.head()
        return 0 if head is None else head[1]

    def _demote(self, rank: int) -> None:
        if rank < self.units or self.scaffold[rank] or self.live[rank] >= self._head_count():
            return
        self.scaffold[rank] = True
        self.normal -= 1
        self.queue.set(_TOKEN + rank, self.live[rank])

    def _readmit(self, rank: int) -> None:
        self.queue.set(_TOKEN + rank, 0)
        self.scaffold[rank] = False
        self.normal += 1
