"""Which earlier tokens of its context a token attends to."""

import torch


def document_attention(inputs: torch.Tensor, eod_id: int) -> torch.Tensor:
    """The mask of tokens that attend to those of their own document only, bool (rows, 1, L, L), true where they do.

    `inputs` (rows, L) are token ids; a document ends with the end-of-document token `eod_id`, which belongs to it.
    transformers hands a mask of four dimensions to attention as it is, so it must be causal itself. Padding is a
    document a token. Every token attends to itself at least, so no row of the softmax is empty.
    """
    ends = inputs == eod_id
    document = ends.cumsum(dim=1) - ends.long()
    same = document[:, :, None] == document[:, None, :]
    return same.tril()[:, None]
