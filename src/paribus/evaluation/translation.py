"""Translations of an encoder-decoder, their BLEU, and bits per UTF-8 byte of held-out targets given their sources.

Translations are by beam search, with the generation of transformers; BLEU (Papineni et al. 2002) by sacrebleu (Post
2018). Bits are as of documents: each token of a target is scored once, the end-of-document token after it is not. A
source longer than the context loses its end, as it does in training; a longer target is scored in windows. Imports
torch: import this module late.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, linear

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import NumericalError
from paribus.evaluation.data_files import TRANSLATION, TRANSLATIONS
from paribus.evaluation.heldout import TextPair, read_pairs
from paribus.evaluation.items import text_digest
from paribus.evaluation.pairs import Ids, progress_counter, windows
from paribus.evaluation.rows import ResultRow
from paribus.evaluation.scoring import LOGITS, NOT_A_NUMBER, SCORED_TOKENS, WRITTEN_TOKENS, computed
from paribus.evaluation.tasks import PAIRS
from paribus.evaluation.text import DocumentBits
from paribus.modeling.device import batches
from paribus.ordering.packing import NO_TARGET
from paribus.tokenization import Tokenizer
from paribus.training.distributed import ALONE, Host

BLEU, TOKENIZED_BLEU = "bleu", "tokenized_bleu"
"""The measures of translations, in [0, 1] as all others."""


@dataclass(frozen=True)
class _Window:
    """A part of a target: `scored`, after `before`, given `source`; 1-D ids."""

    owner: int
    source: Ids
    before: Ids
    scored: Ids

    def ids(self) -> tuple[Ids, ...]:
        """All that decides its score."""
        return self.source, self.before, self.scored


@dataclass(frozen=True)
class Translator:
    """Translates, and scores targets, with an encoder-decoder on the model's device.

    A source longer than the context loses its end, as it does in training; a translation has at most the context's
    tokens. A hypothesis of n tokens is ranked by its log-probability over n ** length_penalty (Ott et al. 2018,
    arXiv 1806.00187: beams of 4, penalty 0.6).
    """

    model: Any
    tokenizer: Tokenizer
    context_length: int
    batch_tokens: int | None = None
    """The most tokens of a batch, unless one source or pair has more: of padded sources and as many for each beam, or
    of sources and targets, padded."""
    beams: int = 4
    length_penalty: float = 0.6
    host: Host = ALONE
    """The processes that work together, each of which has the model."""

    def translate(
        self, sources: Sequence[str], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[str]:
        """The translation of each source; `progress` is told the sources finished and their number.

        Sources of like length are translated together: which does not change them, up to rounding. Raises
        OutOfMemoryError for its kind.
        """
        most, end = self.context_length - 1, self.tokenizer.eos_id
        rows = [np.append(self.tokenizer.encode(source)[:most], end) for source in sources]
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        translations = [""] * len(rows)
        tokens = self.batch_tokens or WRITTEN_TOKENS[self.model.device.type]
        parts = batches(order, lambda place: (1 + self.beams) * len(rows[place]), tokens)
        generated = computed(
            self.host,
            "translating",
            parts,
            lambda places: self._generated([rows[place] for place in places]),
            lambda place: (rows[place],),
            progress_counter(progress, len(order)),
        )
        for places, ids in generated:
            for place, translation in zip(places, ids, strict=True):
                translations[place] = self.tokenizer.decode(translation)
        return translations

    @torch.inference_mode()
    def _generated(self, rows: Sequence[Ids]) -> list[Ids]:
        """Ids of the best hypothesis of each source, without the end-of-document token."""
        sources = padded(rows).to(self.model.device)
        end = self.tokenizer.eos_id
        hypotheses = self.model.generate(
            input_ids=sources.clamp(min=0),
            attention_mask=(sources >= 0).long(),
            use_cache=True,
            num_beams=self.beams,
            length_penalty=self.length_penalty,
            early_stopping=False,
            do_sample=False,
            max_new_tokens=self.context_length - 1,
            decoder_start_token_id=end,
            eos_token_id=end,
            pad_token_id=end,
        )
        # The first token is the one that targets begin with.
        generated = (ids[1:] for ids in hypotheses.cpu().numpy())
        return [ids[: np.append(np.flatnonzero(ids == end), len(ids))[0]] for ids in generated]

    def bits(
        self, pairs: Sequence[TextPair], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> DocumentBits:
        """Bits and bytes of each target; `progress` is told the bytes of targets finished and their number.

        Raises NumericalError when the model gives something that is not a number, OutOfMemoryError for its kind.
        """
        sizes = np.array([len(pair.target.encode()) for pair in pairs], np.int64)
        parts = [part for owner, pair in enumerate(pairs) for part in self._windows(owner, pair)]
        parts.sort(key=lambda part: (len(part.before) + len(part.scored), len(part.source)), reverse=True)
        nats = np.zeros(len(pairs))
        longest = max((len(part.source) for part in parts), default=0)
        report = progress_counter(progress, len(parts), int(sizes.sum()))
        tokens = self.batch_tokens or SCORED_TOKENS[self.model.device.type]
        dealt = batches(parts, lambda part: longest + len(part.before) + len(part.scored), tokens)
        scored = computed(self.host, "scoring", dealt, partial(_window_nats, self.model), _Window.ids, report)
        for windows_of_batch, losses in scored:
            np.add.at(nats, [part.owner for part in windows_of_batch], losses)
        if not np.isfinite(nats).all():
            raise NumericalError(NOT_A_NUMBER)
        scored_tokens = np.zeros(len(pairs), np.int64)
        np.add.at(scored_tokens, [part.owner for part in parts], [len(part.scored) for part in parts])
        return DocumentBits(nats / np.log(2), sizes, scored_tokens)

    def _windows(self, owner: int, pair: TextPair) -> list[_Window]:
        source = np.append(self.tokenizer.encode(pair.source)[: self.context_length - 1], self.tokenizer.eos_id)
        target = self.tokenizer.encode(pair.target)
        if not len(target):
            return []
        parts = windows(target, self.tokenizer.eos_id, self.context_length)
        return [_Window(owner, source, part.context, part.continuation) for part in parts]


@dataclass
class Translated:
    """Sources by task, and the translations of the checkpoints so far."""

    sets: Mapping[str, Sequence[TextPair]]
    texts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """Step and task -> the translation of each pair, by its id."""
    signatures: dict[str, str | None] = field(default_factory=lambda: {BLEU: None, TOKENIZED_BLEU: None})
    """Measure -> how it was computed, in sacrebleu's form; None for one that no set has."""

    def add(self, step: int, translator: Translator, progress: Callable[[int, int], None]) -> list[ResultRow]:
        """Translate all sets with the checkpoint of a step; measures of each pair, linearised."""
        rows: list[ResultRow] = []
        for task, pairs in self.sets.items():
            texts = translator.translate([pair.source for pair in pairs], progress)
            self.texts[step, task] = {pair.id: text for pair, text in zip(pairs, texts, strict=True)}
            references = [pair.target for pair in pairs]
            measured = {BLEU: bleu(texts, references)}
            if task in TRANSLATIONS:  # a test set, whose language is known by its name
                measured[TOKENIZED_BLEU] = tokenized_bleu(texts, references, TRANSLATIONS[task].target)
            for name, score in measured.items():
                self.signatures[name] = score.signature
                rows += [
                    ResultRow(
                        step, task, 0, pair.id, text_digest(f"{pair.source}\0{pair.target}"), name, float(value) / 100
                    )
                    for pair, value in zip(pairs, score.sentences, strict=True)
                ]
        return rows


Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Bleu:
    """BLEU of a corpus of translations."""

    score: float
    """Score in [0, 100]."""
    sentences: Vector
    """(sentences,) linearised values, whose mean is `score` and whose spread gives its standard error."""
    signature: str
    """sacrebleu's: tokenization, smoothing, case and version."""


def translated_sets(config: EvaluationConfig, tasks: Path, heldout: Sequence[TextPair]) -> Translated:
    """The first held-out pairs, and the test sets of the artefact `tasks`."""
    first = heldout[: config.translations]
    named = [name for name in config.tasks if name in TRANSLATIONS]
    sets = {name: read_pairs(tasks / f"{name}{PAIRS}") for name in named}
    return Translated(({TRANSLATION: first} if first else {}) | sets)


@torch.inference_mode()
def _window_nats(model: Any, batch: Sequence[_Window]) -> NDArray[np.float64]:
    """Minus the natural log-probability of what each window scores, (windows,)."""
    sources = padded([part.source for part in batch]).to(model.device)
    inputs = padded([np.append(part.before, part.scored[:-1]) for part in batch]).to(model.device)
    unscored = [np.full(len(part.before) - 1, NO_TARGET) for part in batch]
    targets = padded([np.append(none, part.scored) for none, part in zip(unscored, batch, strict=True)])
    hidden = model.model(
        input_ids=sources.clamp(min=0),
        attention_mask=sources >= 0,
        decoder_input_ids=inputs.clamp(min=0),
        use_cache=False,
    ).last_hidden_state
    flat, expected = hidden.flatten(0, 1), targets.flatten().to(model.device)
    chunk = max(1, LOGITS // int(model.config.vocab_size))
    losses = [
        cross_entropy(
            linear(flat[start : start + chunk], model.lm_head.weight).float(),
            expected[start : start + chunk],
            ignore_index=NO_TARGET,
            reduction="none",
        )
        for start in range(0, len(flat), chunk)
    ]
    nats: NDArray[np.float64] = torch.cat(losses).reshape(targets.shape).double().sum(dim=1).cpu().numpy()
    return nats


def padded(rows: Sequence[NDArray[Any]]) -> torch.Tensor:
    """Rows of ids as one int64 tensor, -1 after their end."""
    filled = torch.full((len(rows), max(map(len, rows))), NO_TARGET, dtype=torch.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = torch.from_numpy(row.astype(np.int64))
    return filled


# `force` says that the text is meant to be tokenized, of which sacrebleu warns otherwise.
_MULTI_BLEU: Mapping[str, Any] = MappingProxyType({"tokenize": "none", "smooth_method": "none", "force": True})
"""sacrebleu as `multi-bleu.perl`: words are what whitespace separates, case counts, nothing is smoothed."""


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of `translations` against a reference each, in sacrebleu's default setting (13a, exponential smoothing).

    BLEU is no mean over sentences. With counts c of matching and t of all n-grams, lengths s of the translations and r
    of the references, log BLEU = 1/4 sum log(c_n / t_n) + min(0, 1 - r / s) over the sums of all sentences, and a
    sentence's value is BLEU (1 + N d), d the differential of log BLEU in its own counts (the delta method). Where the
    counts of an order are 0, so that BLEU is smoothed, every sentence has the value of the whole.

    Raises ValueError for no translations or lists of unequal length.
    """
    return _bleu_of(translations, references, {})


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

    score = _bleu_of(cut(translations), cut(references), _MULTI_BLEU)
    return replace(score, signature=f"{score.signature}|moses:{language}-a-sacremoses-{version('sacremoses')}")


def _bleu_of(translations: Sequence[str], references: Sequence[str], setting: Mapping[str, Any]) -> Bleu:
    from sacrebleu.metrics.bleu import BLEU

    if not translations or len(translations) != len(references):
        raise ValueError(f"BLEU needs a reference for each translation, not {len(references)} of {len(translations)}")
    metric = BLEU(**setting)
    whole = metric.corpus_score(list(translations), [list(references)])
    alone = BLEU(effective_order=True, **setting)
    parts = [alone.sentence_score(text, [target]) for text, target in zip(translations, references, strict=True)]
    counts, totals = (np.array([getattr(part, name) for part in parts], np.float64) for name in ("counts", "totals"))
    lengths = np.array([[part.sys_len, part.ref_len] for part in parts], np.float64)
    values = _linearised_bleu(float(whole.score), counts, totals, lengths)
    return Bleu(float(whole.score), values, str(metric.get_signature()))


def _linearised_bleu(score: float, counts: Vector, totals: Vector, lengths: Vector) -> Vector:
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
