"""What every embedder does, and how one is opened from a configuration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from paribus.config.groups.embedding import EmbedderConfig, TfidfEmbedder
from paribus.ordering.arrays import save_array
from paribus.ordering.parts import CorpusPart
from paribus.stage import JSON

BLOCK = 4096
"""Documents that are embedded at once; bounds the memory a part of many short documents takes."""


class Embedder(Protocol):
    """Documents to unit vectors; what a document gives does not depend on the number of threads."""

    @property
    def threads(self) -> int:
        """Threads that embed at once where it drives GPUs, which processes should not share; 0 where it does not."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, d) rows of unit length, or of zeros for a document without direction, such as an empty one."""

    def facts(self) -> dict[str, JSON]:
        """What the record of the embeddings should say about it."""


def open_embedder(config: EmbedderConfig, directory: Path) -> Embedder:
    """The embedder of `config` whose files are in `directory`; each kind's own errors where they are not."""
    if isinstance(config, TfidfEmbedder):
        from paribus.ordering.embed.tfidf import TfidfSvd

        return TfidfSvd.load(directory, config)
    from paribus.ordering.embed.encoder import DocumentEncoder

    return DocumentEncoder(directory, config)


class PartEmbedding:
    """Embeds parts of a corpus into their files; a process that it is sent to opens the embedder for itself."""

    def __init__(self, config: EmbedderConfig, directory: Path) -> None:
        self.config, self.directory = config, directory
        self._embedder: Embedder | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"config": self.config, "directory": self.directory, "_embedder": None}

    @property
    def embedder(self) -> Embedder:
        """The embedder, opened when it is first asked for."""
        if self._embedder is None:
            self._embedder = open_embedder(self.config, self.directory)
        return self._embedder

    def __call__(self, part: CorpusPart) -> CorpusPart:
        """Write the part's vectors, (rows, d) float16, unless that is done."""
        if not part.target.exists():
            texts = part.texts()
            blocks = [self.embedder.embed(texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK)]
            save_array(part.target, np.concatenate([block.astype(np.float16) for block in blocks]))
        return part
