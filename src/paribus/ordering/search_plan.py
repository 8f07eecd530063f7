"""The kind and sizes of the index that finds the neighbours of a corpus.

The paper's settings (In-Context Pretraining, arXiv 2310.10638, released configuration) are those of 235M documents:
IVF32768,PQ256 for 768 dimensions, trained on 48 vectors a list, 64 lists searched. The rule meets them there.
"""

from dataclasses import dataclass
from math import log2, sqrt
from typing import Literal

from paribus.config.groups.ordering import NeighboursConfig
from paribus.errors import ConfigurationError

FLAT_DOCUMENTS = 20_000
WHOLE_DOCUMENTS = 2_000_000
TRAINING_VECTORS_A_LIST = 48
FEWEST_QUANTIZED = 10_000
"""Fewest documents that the centroids of a sub-quantizer can be learned from."""
CENTROIDS_A_CODE = 256
_VECTORS_A_CENTROID = 39
"""Vectors per centroid below which faiss warns."""
DEFAULT_PROBES = 64
_DIMENSIONS_A_CODE = 3

Index = Literal["flat", "ivf", "ivf_pq"]


@dataclass(frozen=True)
class SearchPlan:
    """An index and its sizes; 0 for what it does not have."""

    index: Index
    lists: int = 0
    probes: int = 0
    """Lists searched a document; 0 with lists: as many as the recall of a sample asks for."""
    code_size: int = 0
    """Bytes of a product-quantized vector."""

    @property
    def training_vectors(self) -> int:
        """Vectors that centroids are learned from."""
        quantizers = CENTROIDS_A_CODE * _VECTORS_A_CENTROID if self.code_size else 0
        return max(self.lists * TRAINING_VECTORS_A_LIST, quantizers)


def plan_search(documents: int, dimensions: int, config: NeighboursConfig) -> SearchPlan:
    """The index for so many documents that have a direction, where `config` leaves it open.

    Raises ConfigurationError for quantization of fewer than 10,000 documents, or of vectors that do not divide.
    """
    index = _index(documents) if config.index == "auto" else config.index
    if index == "flat":
        return SearchPlan("flat")
    lists = min(config.lists or _lists(documents), max(documents, 1))
    probes = config.probes or (0 if config.recall_sample else DEFAULT_PROBES)
    if index == "ivf":
        return SearchPlan("ivf", lists, min(probes, lists))
    if documents < FEWEST_QUANTIZED:
        raise ConfigurationError(
            f"neighbours.index: ivf_pq learns its codes from {FEWEST_QUANTIZED:,} documents or more, and here are "
            f"{documents:,}; use auto, flat or ivf"
        )
    return SearchPlan("ivf_pq", lists, min(probes, lists), _code_size(dimensions, config))


def _index(documents: int) -> Index:
    if documents <= FLAT_DOCUMENTS:
        return "flat"
    return "ivf" if documents <= WHOLE_DOCUMENTS else "ivf_pq"


def _lists(documents: int) -> int:
    """The power of two nearest to 2 sqrt(n): 32,768 at 235M documents."""
    nearest = int(2 ** round(log2(max(2 * sqrt(documents), 1))))
    return max(1, min(nearest, documents // TRAINING_VECTORS_A_LIST))


def _code_size(dimensions: int, config: NeighboursConfig) -> int:
    """A byte for three dimensions, or the next smaller number that divides them: 256 for 768."""
    if config.code_size is None:
        most = max(1, dimensions // _DIMENSIONS_A_CODE)
        return next(size for size in range(most, 0, -1) if dimensions % size == 0)
    if dimensions % config.code_size:
        raise ConfigurationError(
            f"neighbours.code_size: {config.code_size} does not divide the {dimensions} dimensions of the embeddings"
        )
    return config.code_size
