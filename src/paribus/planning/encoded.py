"""Room on the disk for encoded text."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from paribus.config.groups.packing import PairPacking
from paribus.config.groups.tokenization import draws_of
from paribus.ordering import SAMPLED_BYTES
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.stages import Place
from paribus.planning.length import corpus_text, known_text, known_vocabulary_size, sized

SHORT_IDS = 65_536
"""Tokens of a vocabulary up to which ids are stored in two bytes each, and in four above."""
INTEGER = 8
"""Bytes of an entry of all other arrays."""
CONTEXT_ARRAYS = 4
"""Arrays of the artefact `contexts` with an entry a context, or a pair."""


@dataclass(frozen=True)
class Encoded:
    """Room on the disk for the missing artefacts `tokens` and `contexts`: draws take it as often as they are.

    BPE-dropout makes more tokens than it is estimated by, BPE's.
    """

    tokens: int = 0
    """Bytes of `tokens` whose corpus is there, estimated as its tokens are."""
    contexts: int = 0
    """Bytes of `contexts`, most of them the sampled bytes of the corpus."""
    draws: int = 1
    """The most draws of BPE-dropout that one of them has."""
    unknown: bool = False
    """True if others have no known size, since their corpus is not made."""

    @classmethod
    def of(cls, runs: Sequence[PreparedRun], missing: Collection[Place], root: OutputRoot) -> "Encoded":
        """Estimate the room for those artefacts of runs that are `missing`."""
        made = {
            name: {node.key: run for run in runs if (node := run.wanted.get(name)) and node.place in missing}.values()
            for name in ("tokens", "contexts")
        }
        sizes = [_tokens_bytes(run, root) for run in made["tokens"]]
        return cls(
            tokens=sum(size for size in sizes if size is not None),
            contexts=sum(_contexts_bytes(run, root) for run in made["contexts"]),
            draws=max((draws_of(run.job.config.encoder) for run in made["tokens"]), default=1),
            unknown=None in sizes,
        )


def _tokens_bytes(run: PreparedRun, root: OutputRoot) -> int | None:
    """Ids of each draw, their bounds, and of pairs the lengths of sources; bytes of the text once."""
    text, config = corpus_text(run, root), run.job.config
    if text is None:
        return None
    ends = text["documents"] * (2 if "target_bytes" in text else 1)
    tokens = text["bytes"] / known_text(run, root).bytes_per_token - ends
    wide = known_vocabulary_size(config, run.nodes["vocabulary"], root).value > SHORT_IDS
    bounds = INTEGER * ends
    size: int = round(draws_of(config.encoder) * (tokens * (4 if wide else 2) + bounds))
    return size + INTEGER * int(text["documents"])


def _contexts_bytes(run: PreparedRun, root: OutputRoot) -> int:
    """The arrays of `Measured`: of each draw entries of a context and two a sampled byte; 0 without a corpus."""
    text, config = corpus_text(run, root), run.job.config
    if text is None:
        return 0
    known = known_text(run, root)
    length = sized(config, known).model.context_length * known.bytes_per_token
    contexts = text["documents"] if isinstance(config.packing, PairPacking) else math.ceil(text["bytes"] / length)
    entries = int(CONTEXT_ARRAYS * contexts + 2 * min(SAMPLED_BYTES, text["bytes"]))
    return draws_of(config.encoder) * entries * INTEGER
