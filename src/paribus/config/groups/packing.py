"""Group `packing`: how ordered documents become contexts of one length."""

from typing import Literal

from paribus.config.declare import group, identity
from paribus.config.groups.types import Positive
from paribus.config.units import Size

Attention = Literal["context", "document"]
_ATTENTION = "What a token attends to: all before it in the context, or in its document only."
Shuffle = Literal["text", "contexts", "none"]
SHUFFLED_TEXT: Shuffle = "text"
_SHUFFLE = (
    "What is shuffled each epoch, so that neighbours share a context and not a batch: text, in stretches of equal "
    "bytes, so that all tokenizers read the same text in about the same sequence; contexts (the papers'), in another "
    "sequence for each tokenizer; or none."
)
_STRETCH = (
    "Bytes of the stretches that shuffle=text puts in a random sequence; null takes 32 a token of a context, or 8 "
    "contexts of model.context_bytes."
)


@group
class ConcatenatePacking:
    """Documents end to end, cut into contexts (the papers')."""

    kind: Literal["concatenate"] = identity("concatenate", doc="Concatenate and cut.")
    attention: Attention = identity("context", doc=_ATTENTION)
    shuffle: Shuffle = identity("text", doc=_SHUFFLE)
    stretch_bytes: Size | None = identity(None, doc=_STRETCH)


@group
class BestFitPacking:
    """Best-fit-decreasing bin packing (Ding et al., arXiv 2404.10830): only documents longer than a context are cut."""

    kind: Literal["best_fit"] = identity("best_fit", doc="No document is cut that fits a context; the rest is padding.")
    window: Positive | None = identity(
        1024, doc="Documents, consecutive in the order, that are packed together; null takes all, as the paper does."
    )
    attention: Attention = identity("context", doc=_ATTENTION)
    shuffle: Shuffle = identity("text", doc=_SHUFFLE)
    stretch_bytes: Size | None = identity(None, doc=_STRETCH)


@group
class OneDocumentPacking:
    """One document a context, a longer one in several, the rest padding."""

    kind: Literal["one_document"] = identity("one_document", doc="A context holds tokens of one document.")
    shuffle: Shuffle = identity("text", doc=_SHUFFLE)
    stretch_bytes: Size | None = identity(None, doc=_STRETCH)


@group
class PairPacking:
    """A pair of source and target a row, each cut at the context length; for encoder_decoder."""

    kind: Literal["pair"] = identity("pair", doc="Padded to the longest of a micro-batch, in which lengths are alike.")
    shuffle: Literal["contexts", "none"] = identity(
        "contexts", doc="Whether pairs are in a random sequence each epoch, the same for every tokenizer."
    )


PackingConfig = ConcatenatePacking | BestFitPacking | OneDocumentPacking | PairPacking


def pads(packing: PackingConfig) -> bool:
    """Whether contexts may predict fewer tokens than they have positions; how many fewer, the documents decide."""
    return not isinstance(packing, ConcatenatePacking)


def within_documents(packing: PackingConfig) -> bool:
    """Whether a mask must keep attention inside documents; a context of one document cannot leave it."""
    return not isinstance(packing, OneDocumentPacking | PairPacking) and packing.attention == "document"
