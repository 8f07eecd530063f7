"""Document orders and the contexts cut out of them: In-Context Pretraining (arXiv 2310.10638) and its baselines.

A stage each: documents become unit vectors (`embeddings`), these have nearest neighbours (`neighbours`, or by shared
words `bm25`), near copies leave (`duplicates`), and documents are put into a sequence (`orders`, with the paper's path
in `in_context`). The sequence is cut into contexts (`packing`), which are measured once, as that reads all tokens
(`contexts`). Training then reads them in a sequence of its own (`shuffle`), so that related documents share a context
and not a batch. Compiled loops are in `kernels`.

What must hold: an order lists every kept document once, or says where it repeats; neither workers nor a kill change it;
whoever reads one checks it against its digest. Texts decide an order, so all tokenizers of a sweep share it.

The promised name loads on first use, so that importing a module of the package costs no more than that module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.ordering.in_context import traverse

__all__ = ["traverse"]
SAMPLED_BYTES = 2**18
"""Bytes of the corpus that are sampled, one in each of as many equal parts; all of a smaller corpus."""


def __getattr__(name: str) -> Any:
    if name == "traverse":
        from paribus.ordering.in_context import traverse

        return traverse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
