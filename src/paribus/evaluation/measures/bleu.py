"""BLEU (Papineni et al. 2002) by sacrebleu (Post 2018), and what each sentence contributes to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# `force` says that the text is meant to be tokenized, of which sacrebleu warns otherwise.
_MULTI_BLEU: Mapping[str, Any] = MappingProxyType({"tokenize": "none", "smooth_method": "none", "force": True})
"""sacrebleu as `multi-bleu.perl`: words are what whitespace separates, case counts, nothing is smoothed."""


@dataclass(frozen=True)
class Bleu:
    """BLEU of a corpus of translations."""

    score: float
    """In [0, 100]."""
    sentences: Vector
    """(sentences,) linearised values, whose mean is `score` and whose spread gives its standard error."""
    signature: str
    """sacrebleu's: tokenization, smoothing, case and version."""


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of `translations` against a reference each, in sacrebleu's default setting (13a, exponential smoothing).

    BLEU is no mean over sentences. With counts c of matching and t of all n-grams, lengths s of the translations and r
    of the references, log BLEU = 1/4 sum log(c_n / t_n) + min(0, 1 - r / s) over the sums of all sentences, and a
    sentence's value is BLEU (1 + N d), d the differential of log BLEU in its own counts (the delta method). Where the
    counts of an order are 0, so that BLEU is smoothed, every sentence has the value of the whole.

    Raises ValueError for no translations or lists of unequal length.
    """
    return _scored(translations, references, {})


def tokenized_bleu(translations: Sequence[str], references: Sequence[str], language: str) -> Bleu:
    """Tokenized BLEU: what `multi-bleu.perl` gives of text that Moses' tokenizer has cut.

    Moses is sacremoses, with the rules of `language` (a code such as de; English's abbreviations for one it has none
    of) and `-a`: each hyphen inside a word is a token of its own. Ott et al. 2018 (arXiv 1806.00187) score so: they cut
    English-French with `-a`, and split the compounds of English-German at their hyphens when they score it. Case is
    kept, punctuation is not normalized. Where no n-gram of some order matches it is 0.

    Sentences and errors are those of `bleu`.
    """
    from importlib.metadata import version

    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)

    def cut(texts: Sequence[str]) -> list[str]:
        return [moses.tokenize(text, aggressive_dash_splits=True, return_str=True, escape=False) for text in texts]

    found = _scored(cut(translations), cut(references), _MULTI_BLEU)
    return replace(found, signature=f"{found.signature}|moses:{language}-a-sacremoses-{version('sacremoses')}")


def _scored(translations: Sequence[str], references: Sequence[str], setting: Mapping[str, Any]) -> Bleu:
    from sacrebleu.metrics.bleu import BLEU

    if not translations or len(translations) != len(references):
        raise ValueError(f"BLEU needs a reference for each translation, not {len(references)} of {len(translations)}")
    metric = BLEU(**setting)
    whole = metric.corpus_score(list(translations), [list(references)])
    alone = BLEU(effective_order=True, **setting)
    parts = [alone.sentence_score(one, [other]) for one, other in zip(translations, references, strict=True)]
    counts, totals = (np.array([getattr(part, name) for part in parts], np.float64) for name in ("counts", "totals"))
    lengths = np.array([[part.sys_len, part.ref_len] for part in parts], np.float64)
    values = _linearised(float(whole.score), counts, totals, lengths)
    return Bleu(float(whole.score), values, str(metric.get_signature()))


def _linearised(score: float, counts: Vector, totals: Vector, lengths: Vector) -> Vector:
    """(sentences,) from counts and totals (sentences, 4) and lengths (sentences, 2) of translation and reference."""
    sentences, matched, all_ = len(counts), counts.sum(axis=0), totals.sum(axis=0)
    if not matched.all():
        return np.full(sentences, score)
    change = (counts / matched - totals / all_).mean(axis=1)
    translated, reference = lengths.sum(axis=0)
    if translated < reference:
        change += reference / translated * (lengths[:, 0] / translated - lengths[:, 1] / reference)
    values: Vector = score * (1 + sentences * change)
    return values
