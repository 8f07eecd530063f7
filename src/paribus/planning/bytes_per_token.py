"""How many bytes of text a token will stand for, before anything is encoded: from this root's records, or by a rule."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

from paribus.config.groups.tokenization import BytesTokenizer, WordPieceTokenizer
from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import OutputRoot
from paribus.store.artifacts import RECORD

RULE = (0.00147, -0.10397, 1.95541, -6.61883)
"""Of English, by byte-level BPE: factors of powers of the logarithm of the size, the highest first.

`benchmarks/bytes_per_token.py` fits them; docs/benchmarks.md says how far off they are, also for other text.
"""
FITTED = (300, 65_536)
"""Sizes of the smallest and of the largest vocabulary that the rule was fitted on."""
ALL_BYTES = 256
NEAR_THE_RULE = ("bpe", "scaffold_bpe", "unigram")
"""Tokenizers that on English text are near the rule, so that on other text their distance is that of the text."""
Record = Mapping[str, Any]


@dataclass(frozen=True)
class _Measured:
    """What an artefact `tokens` of the corpus has."""

    size: int
    """Of its vocabulary."""
    value: float
    """Bytes a token."""
    tokenizer: str
    same_kind: bool
    """Whether all but the size of the vocabulary is as asked for."""
    by_rule: bool
    """Whether its distance from the rule is that of the text."""


@dataclass(frozen=True)
class BytesPerToken:
    """An estimate, and in words what it is taken from."""

    value: float
    source: str


def by_rule(vocabulary: int) -> float:
    """Bytes of English text a token of byte-level BPE; 1 for no more tokens than bytes, constant above the fit."""
    if vocabulary <= ALL_BYTES:
        return 1.0
    logarithm = log(min(vocabulary, FITTED[1]))
    value = 0.0
    for factor in RULE:
        value = value * logarithm + factor
    return max(1.0, value)


def estimated(node: Node, vocabulary: int, root: OutputRoot) -> BytesPerToken:
    """Bytes a token of the artefact `tokens` that `node` is to be, with a vocabulary of so many tokens.

    Other vocabularies of the same corpus tell by how much the text differs from the rule: those of the same kind, else
    those of other kinds that cut text about as the rule says.
    """
    if isinstance(node.config.tokenizer, BytesTokenizer):
        return BytesPerToken(1.0, "(tokenizer=bytes)")
    found = sorted(_measured(node, root), key=lambda each: (each.size, each.tokenizer))
    same = [each for each in found if each.same_kind]
    used = same or [each for each in found if each.by_rule]
    short = isinstance(node.config.tokenizer, WordPieceTokenizer) and not same
    far = "; WordPiece took 2 to 3.5 times as many tokens where it was measured" if short else ""
    if not used:
        most = f", which is that of {FITTED[1]:,}, the largest it was fitted on" if vocabulary > FITTED[1] else ""
        source = f"by the rule for English text and BPE of {vocabulary:,} tokens{most}{far}"
        return BytesPerToken(by_rule(vocabulary), source)
    of_size = {each.size: each for each in used}
    measured = {size: each.value for size, each in of_size.items()}
    nearest = min(of_size.values(), key=lambda each: abs(log(each.size / vocabulary)))
    sizes = f"{len(measured)} vocabularies" if len(measured) > 1 else "a vocabulary"
    other = "" if same else f" of another kind ({nearest.tokenizer})"
    source = f"from {sizes} of this corpus here, the nearest of {nearest.size:,} tokens{other}, for {vocabulary:,}{far}"
    return BytesPerToken(by_rule(vocabulary) * _interpolated(measured, vocabulary), source)


def _interpolated(measured: Mapping[int, float], vocabulary: int) -> float:
    """What was measured over what the rule says, between two sizes linear in the logarithm of the size."""
    ratios = {size: value / by_rule(size) for size, value in measured.items()}
    for (low, first), (high, second) in pairwise(ratios.items()):
        if low <= vocabulary <= high:
            share = log(vocabulary / low) / log(high / low)
            return first + share * (second - first)
    return ratios[min(ratios, key=lambda size: abs(log(size / vocabulary)))]


def _measured(node: Node, root: OutputRoot) -> Iterator[_Measured]:
    """Of artefacts `tokens` of the same corpus."""
    corpus, wanted = node.inputs["corpus"].key, _kind(node.identity["identity"], node.inputs["vocabulary"].identity)
    for path in sorted((root.store.root / node.name).glob(f"*/{RECORD}")):
        record = _read(path)
        if record is None or record["inputs"].get("corpus") != corpus:
            continue
        trained = root.store.find("vocabulary", record["inputs"]["vocabulary"])
        result = record["result"]
        if trained and result["tokens"]:
            made, encoder = trained.record(), record["identity"]["encoder"]["kind"]
            tokenizer = str((made["identity"].get("tokenizer") or {}).get("kind"))
            yield _Measured(
                size=int(result["vocab_size"]),
                value=result["bytes"] / result["tokens"],
                tokenizer=tokenizer,
                same_kind=_kind(record["identity"], made) == wanted,
                by_rule=tokenizer in NEAR_THE_RULE and not str(encoder).startswith("dropout"),
            )


def _kind(encoder: Any, vocabulary: Record) -> tuple[Any, Any]:
    """All that decides tokens beside the corpus and the size of the vocabulary."""
    groups = {
        name: {field: value for field, value in group.items() if field != "vocab_size"}
        for name, group in vocabulary["identity"].items()
        if isinstance(group, dict)
    }
    return json.dumps(encoder, sort_keys=True), json.dumps(groups, sort_keys=True)


def _read(path: Path) -> Record | None:
    """A record that can be read; `paribus clean --verify` is for the others."""
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
        _ = record["inputs"]["corpus"], record["inputs"]["vocabulary"], record["identity"]["encoder"]["kind"]
        _ = record["result"]["vocab_size"] + record["result"]["tokens"] + record["result"]["bytes"]
        return record
    except (OSError, ValueError, KeyError, TypeError):
        return None
