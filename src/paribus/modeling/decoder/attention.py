"""Causal attention: of whole rows, of documents in them, or of what a mask says."""

from typing import NamedTuple

import torch
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention


class Documents(NamedTuple):
    """Documents that stand end to end in the rows of a batch, each of which is attended to by its own tokens only."""

    bounds: torch.Tensor
    """First token of each, counted through all rows, and the number of all tokens; int32 (documents + 1,)."""
    longest: int
    """No document has more tokens."""


Mask = torch.Tensor | Documents | None
"""None: all before in the row. A tensor: bool, true where a token attends, (rows, 1, length, length of the keys)."""


def attend(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: Mask) -> torch.Tensor:
    """Attention (rows, length, heads, width of a head) from `queries` of that shape; keys and values may be longer."""
    if isinstance(mask, Documents):
        return _attend_in_documents(queries, keys, values, mask)
    queries, keys, values = (heads.transpose(1, 2) for heads in (queries, keys, values))
    found = scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)
    return found.transpose(1, 2)


def _attend_in_documents(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, documents: Documents
) -> torch.Tensor:
    """Without a mask of all pairs of tokens: time and memory grow with the documents, not with the rows."""
    q, k, v = (heads.flatten(0, 1) for heads in (queries, keys, values))
    bounds, longest = documents
    found = varlen_attn(q, k, v, bounds, bounds, longest, longest, window_size=(-1, 0))
    assert isinstance(found, torch.Tensor)
    return found.view(queries.shape)
