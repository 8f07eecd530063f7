"""Translations by beam search, with the generation of transformers. Imports torch: import this module late."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from paribus.evaluation.models.batch_tokens import WRITTEN
from paribus.evaluation.models.shares import computed
from paribus.evaluation.progress import counter
from paribus.evaluation.prompts.pairs import Ids
from paribus.evaluation.text.target_bits import padded
from paribus.modeling.device import batches
from paribus.tokenization import Tokenizer
from paribus.training.distributed import ALONE, Host


@dataclass(frozen=True)
class Translator:
    """Translates with an encoder-decoder on the model's device.

    A source longer than the context loses its end, as it does in training; a translation has at most the context's
    tokens. A hypothesis of n tokens is ranked by its log-probability over n ** length_penalty (Ott et al. 2018,
    arXiv 1806.00187: beams of 4, penalty 0.6).
    """

    model: Any
    tokenizer: Tokenizer
    context_length: int
    batch_tokens: int | None = None
    """The most tokens of a batch, of padded sources and as many for each beam, unless one source has more."""
    beams: int = 4
    length_penalty: float = 0.6
    host: Host = ALONE
    """The processes that translate together, each of which has the model."""

    def translate(
        self, sources: Sequence[str], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[str]:
        """The translation of each source; `progress` is told the sources finished and their number.

        Sources of like length are translated together: which does not change them, up to rounding. Raises
        OutOfMemoryError for its kind.
        """
        rows = [self._source(source) for source in sources]
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        found = [""] * len(rows)
        tokens = self.batch_tokens or WRITTEN[self.model.device.type]
        parts = batches(order, lambda place: (1 + self.beams) * len(rows[place]), tokens)
        generated = computed(
            self.host,
            "translating",
            parts,
            lambda places: self._generated([rows[place] for place in places]),
            lambda place: (rows[place],),
            counter(progress, len(order)),
        )
        for places, ids in generated:
            for place, translation in zip(places, ids, strict=True):
                found[place] = self.tokenizer.decode(translation)
        return found

    def _source(self, source: str) -> Ids:
        return np.append(self.tokenizer.encode(source)[: self.context_length - 1], self.tokenizer.eos_id)

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
        return [_until(ids[1:], end) for ids in hypotheses.cpu().numpy()]


def _until(ids: Ids, end: int) -> Ids:
    found = np.flatnonzero(ids == end)
    return ids[: found[0]] if len(found) else ids
