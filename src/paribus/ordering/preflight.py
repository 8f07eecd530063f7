"""What of the neighbours can be refused before anything runs: from the configuration and the files of an embedder."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from paribus.config.groups.embedding import EmbedderConfig, MiniLMEmbedder, TfidfEmbedder, TransformersEmbedder
from paribus.config.schema import RunConfig
from paribus.errors import ParibusError
from paribus.ordering.embed.directory import local_directory, minilm_directory
from paribus.ordering.embed.layout import read_layout


def problems(config: RunConfig, missing: Collection[str]) -> Iterator[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of stages that are `missing`.

    That an embedder's files are not there, its fingerprint tells.
    """
    code_size, index = config.neighbours.code_size, config.neighbours.index
    if "neighbours" in missing and code_size is not None and index in ("auto", "ivf_pq"):
        dimensions = _dimensions(config.embedder)
        if dimensions is not None and dimensions % code_size:
            divisors = [size for size in range(1, dimensions + 1) if dimensions % size == 0]
            near = min(divisors, key=lambda size: abs(size - code_size))
            yield (
                "neighbours.code_size",
                f"{code_size} does not divide the {dimensions} dimensions of embedder.kind={config.embedder.kind}; "
                f"use {near}, or null",
            )
    if "embeddings" in missing:
        yield from _positions(config.embedder)


def _positions(embedder: EmbedderConfig) -> Iterator[tuple[str, str]]:
    """A chunk that is longer than what the encoder has positions for."""
    positions = _encoder_config(embedder).get("max_position_embeddings")
    most = embedder.max_tokens if isinstance(embedder, TransformersEmbedder | MiniLMEmbedder) else 0
    if isinstance(positions, int) and most > positions:
        message = f"{most} tokens are more than the {positions} positions of the encoder"
        yield "embedder.max_tokens", f"{message}, of which special tokens take some; use less"


def _dimensions(embedder: EmbedderConfig) -> int | None:
    """Length of its vectors; None where only files say it that are not here or not readable."""
    if isinstance(embedder, TfidfEmbedder):
        return embedder.dimensions
    size = _encoder_config(embedder).get("hidden_size")
    return size if isinstance(size, int) else None


def _encoder_config(embedder: EmbedderConfig) -> dict[str, Any]:
    """The `config.json` of an encoder that is on this machine, else nothing."""
    try:
        if isinstance(embedder, MiniLMEmbedder):
            directory: Path | None = minilm_directory()
        else:
            directory = local_directory(embedder) if isinstance(embedder, TransformersEmbedder) else None
        if directory is None:
            return {}
        layout = read_layout(directory, "mean")
        found = json.loads((layout.directory / "config.json").read_text(encoding="utf-8"))
    except (ParibusError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
