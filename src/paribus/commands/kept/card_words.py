"""What the numbers of a model card are, in words of the field, and how the model was made."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from paribus.config.explain import summaries
from paribus.config.units import format_count, format_size
from paribus.evaluation.suites.registry import CONTINUATION

_SCORE = re.compile(r"eval/(?P<task>.+)/(?P<shots>\d+)shot/(?P<metric>[^/]+)")
_BITS = re.compile(r"eval/(?:(?P<text>.+)/)?bits_per_byte")
METRICS: Mapping[str, str] = MappingProxyType(
    {
        "acc": "accuracy",
        "acc_norm": "accuracy, by log-probability a character",
        "acc_bytes": "accuracy, by log-probability a byte",
        "exact_match": "exact match",
        "em": "exact match",
        "f1": "F1",
        "mcc": "Matthews correlation",
        "bleu": "BLEU",
        "tokenized_bleu": "BLEU of tokenized text",
        "chrf": "chrF",
        "rouge_geometric_mean": "geometric mean of ROUGE-1, ROUGE-2 and ROUGE-L",
        "rouge1": "ROUGE-1",
        "rouge2": "ROUGE-2",
        "rougeL": "ROUGE-L",
        "bits_per_byte": "bits per byte",
        "choice_bits": "bits of the right choice (minus log2 of its share of the choices' probabilities)",
        "target_bits": "bits of the right answer (minus log2 of its probability)",
        "word_precision": "precision of words",
        "word_recall": "recall of words",
        "word_f1": "F1 of words",
    }
)
TEXTS: Mapping[str | None, str] = MappingProxyType(
    {
        None: "held-out text",
        "heldout_clean": "held-out text that is unlike all training text",
        "heldout_concatenated": "held-out text, documents end to end",
    }
)
STATISTICS: Mapping[str, str] = MappingProxyType(
    {
        "text/bytes_per_token": "bytes per token",
        "text/tokens_per_word": "tokens per word",
        "text/mean_token_length": "characters per token",
        "text/entropy": "entropy of the token frequencies (bits)",
        "text/redundancy": "redundancy (1 - entropy / log2 of the vocabulary size)",
        "text/renyi_efficiency": "Rényi efficiency (order 2.5)",
        "text/used_tokens": "tokens of the vocabulary that occur",
        "text/unused_tokens": "tokens of the vocabulary that do not occur",
        "text/scaffold_share": "scaffold tokens (kept only to be merged further) per token of the vocabulary",
        "embeddings/uniformity": "uniformity of the embeddings of tokens that occur (0: all alike, about -4: random)",
        "embeddings/uniformity_frequent": "the same, of the most frequent third",
        "embeddings/uniformity_medium": "the same, of the middle third",
        "embeddings/uniformity_rare": "the same, of the rarest third",
        "embeddings/uniformity_unused": "the same, of tokens that do not occur",
    }
)
_MADE: Mapping[str, str] = MappingProxyType(
    {
        "model": "architecture",
        "start": "initial weights",
        "tokenizer": "tokenizer",
        "pretokenizer": "pre-tokenizer",
        "encoder": "encoding of text into tokens",
        "corpus": "training text",
        "ordering": "order of the documents",
        "packing": "contexts",
    }
)
"""Group of the configuration -> what people call what it decides."""


def scores(found: Mapping[str, float]) -> Iterator[str]:
    """The scores of a model as a table, then what is counted of its tokens as another."""
    counted = {name: value for name, value in found.items() if name in STATISTICS}
    yield from _table("measure", [(score(name), value) for name, value in found.items() if name not in counted])
    if any(name.startswith(f"eval/{CONTINUATION}/") for name in found):
        yield (
            f"`{CONTINUATION}` asks which of four texts goes on with a passage of held-out text; a blind guess is "
            "right in a quarter. Accuracies are shares of 1."
        )
        yield ""
    if counted:
        yield from ("Tokens of the held-out text:", "")
        yield from _table("statistic", [(STATISTICS[name], value) for name, value in counted.items()])


def score(name: str) -> str:
    """A logged name for people; as it is where it is of another kind."""
    if match := _SCORE.fullmatch(name):
        return f"{match['task']}, {match['shots']}-shot, {METRICS.get(match['metric'], match['metric'])}"
    if match := _BITS.fullmatch(name):
        return f"bits per byte, {TEXTS.get(match['text'], match['text'])}"
    return name


def made_of(
    identity: Mapping[str, Any], model: Mapping[str, Any], result: Mapping[str, Any], *, early: bool
) -> Iterator[str]:
    """Model, tokenizer and training text as a table.

    `identity` is the configuration of the run, `model` that of transformers, `result` that of the training, which went
    on after this model where that is `early`.
    """
    yield from ("| | |", "|---|---|")
    more = {
        "model": f"{format_count(result['parameters'])} parameters",
        "tokenizer": f"{model['vocab_size']:,} tokens" if "vocab_size" in model else "",
        "corpus": f"{format_size(result['text_bytes'])} of it read{' in all steps' if early else ''}, "
        f"{format_count(result['tokens'])} tokens",
    }
    for group, called in _MADE.items():
        kind = (identity.get(group) or {}).get("kind")
        if kind is not None:
            told = [summaries(group).get(kind, kind), more.get(group, "")]
            yield f"| {called} | {'; '.join(filter(None, told))} (`{kind}`) |"
    yield ""


def _table(heading: str, rows: list[tuple[str, float]]) -> Iterator[str]:
    yield from (f"| {heading} | value |", "|---|---|")
    yield from (f"| {name} | {value:.6g} |" for name, value in rows)
    yield ""
