"""Pre-tokens that end where a causal language model is least sure how the text goes on.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889: with H_i the entropy of the next-character
distribution after character i, a boundary follows character i where H_i > H_(i-1) and H_i > H_(i+1).
"""

import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.pretokenize.spans.character_ids import CharacterIds, character_ids
from paribus.tokenization.pretokenize.spans.codes import LINE_BREAKS
from paribus.tokenization.pretokenize.spans.model_files import model_digest

if TYPE_CHECKING:
    from paribus.tokenization.pretokenize.spans.language_model import CausalLanguageModel

Reals = npt.NDArray[np.float64]

KIND, FORMAT = "predictive_entropy", 1
_DECIMALS = 4
"""Bits beyond these are noise of float32: differences that small make no maximum."""
_TEXTS = 256
"""Texts whose lines are batched together."""
_BREAKS = re.compile(f"([{re.escape(LINE_BREAKS)}])")


class PredictiveEntropySpans:
    """Cuts each line of a text, alone, at the strict local maxima of a language model's predictive entropy.

    `model` is a local directory: a paribus checkpoint with character units and no merges, or a Hugging Face causal
    language model whose tokenizer makes a token of each character. Its start token (a paribus tokenizer's first special
    token, `cls`, `bos`), if it has one, stands before the line and gives H before the first character; without one, the
    first character ends no piece. Line breaks are pieces of their own. With `threshold`, maxima below so many bits
    are no boundaries. The model is loaded when text first comes.

    Raises ConfigurationError for a threshold that is no finite number, DataError for a directory without a model.
    """

    def __init__(self, model: str | Path, *, threshold: float | None = None, device: str = "cpu") -> None:
        if threshold is not None and not (_is_number(threshold) and math.isfinite(threshold)):
            raise ConfigurationError(f"pretokenizer.threshold: {threshold!r}; bits (a finite number) or null is needed")
        self.model = Path(model).absolute()
        self.threshold = threshold
        self.device = device
        self.digest = model_digest(self.model)
        """SHA-256 of the model's files; see `model_digest`."""
        self._loaded: tuple[CharacterIds, CausalLanguageModel] | None = None

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`. Its lines are computed in batches.

        Raises ConfigurationError where the model's tokens are not characters, DataError for a character that they
        cannot stand for.
        """
        return next(self.pieces_of([text]))

    def pieces_of(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """The pre-tokens of each text, with the lines of many texts in a batch.

        The same as one by one, but where entropies are equal up to the noise of float32, which follows the batch.
        """
        remaining = iter(texts)
        while batch := list(islice(remaining, _TEXTS)):
            parts = [_BREAKS.split(text) for text in batch]
            cut = iter(self._cut([line for lines in parts for line in lines[::2]]))
            for lines in parts:
                pieces: list[str] = []
                for number, line in enumerate(lines):
                    pieces += [line] if number % 2 else next(cut)
                yield pieces

    def entropies(self, lines: list[str]) -> list[Reals]:
        """H in bits before the first character (NaN without a start token) and after each, shape (characters + 1,)."""
        characters, model = self._load()
        tokens = {character: characters.of(character) for character in set().union(*lines)}
        start = () if characters.start is None else (characters.start,)
        spelled = [[start, *map(tokens.__getitem__, line)] for line in lines]
        found = model.entropies([list(chain(*parts)) for parts in spelled])
        return [_after_each(parts, entropies) for parts, entropies in zip(spelled, found, strict=True)]

    def boundaries(self, entropies: Reals) -> list[int]:
        """Numbers of characters after which a piece ends inside a line, by what `entropies` gave for it."""
        before, here, after = entropies[:-2], entropies[1:-1], entropies[2:]
        peaks = (here > before) & (here > after)
        if self.threshold is not None:
            peaks &= here >= self.threshold
        boundaries: list[int] = (np.flatnonzero(peaks) + 1).tolist()
        return boundaries

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values; the model is named by its directory and the digest of its files."""
        return {
            "kind": KIND,
            "format": FORMAT,
            "model": str(self.model),
            "digest": self.digest,
            "threshold": self.threshold,
        }

    @classmethod
    def from_state(
        cls, state: Any, *, model: str | Path | None = None, device: str = "cpu"
    ) -> "PredictiveEntropySpans":
        """What `to_state` gave, with the model where it was or in the directory `model`.

        DataError for another state, a model that is not there, or one whose files are not those of the state.
        """
        if not isinstance(state, dict) or (state.get("kind"), state.get("format")) != (KIND, FORMAT):
            raise DataError(f"the state is not one of a pre-tokenizer of kind {KIND!r}, format {FORMAT}")
        if not isinstance(state.get("model"), str) or not isinstance(state.get("digest"), str):
            raise DataError(f"the state of pre-tokenizer {KIND!r} lacks the model's directory or its digest")
        try:
            made = cls(model or state["model"], threshold=state.get("threshold"), device=device)
        except ConfigurationError as error:
            raise DataError(f"the state of pre-tokenizer {KIND!r} is malformed: {error}") from error
        if made.digest != state["digest"]:
            raise DataError(
                f"{made.model} is not the language model the pre-tokenizer was made with: its files have the digest "
                f"{made.digest}, not {state['digest']}; give the directory of that model"
            )
        return made

    def _load(self) -> "tuple[CharacterIds, CausalLanguageModel]":
        if self._loaded is None:
            from paribus.tokenization.pretokenize.spans.language_model import CausalLanguageModel

            self._loaded = character_ids(self.model), CausalLanguageModel(self.model, self.device)
        return self._loaded

    def _cut(self, lines: list[str]) -> Iterator[list[str]]:
        full = [line for line in lines if line]
        entropies = iter(self.entropies(full)) if full else iter(())
        for line in lines:
            yield _pieces(line, self.boundaries(next(entropies))) if line else []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_loaded": None}


def _after_each(parts: list[tuple[int, ...]], entropies: Reals) -> Reals:
    """The entropy after the last token of each part, NaN before the first token."""
    known: Reals = np.concatenate([[np.nan], np.round(entropies, _DECIMALS)])
    after: Reals = known[np.cumsum([len(part) for part in parts])]
    return after


def _pieces(line: str, boundaries: list[int]) -> list[str]:
    return [line[a:b] for a, b in pairwise([0, *boundaries, len(line)])]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
