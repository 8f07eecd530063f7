"""Pre-tokens that end where a causal language model is least sure how the text goes on.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889: with H_i the entropy of the next-character
distribution after character i, a boundary follows character i where H_i > H_(i-1) and H_i > H_(i+1).
"""

import hashlib
import math
import re
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.encode import Encoding
from paribus.tokenization.pretokenize import PATTERNS, check_state
from paribus.tokenization.settings import read
from paribus.tokenization.spans import IDEOGRAPH, LETTER, LINE_BREAKS, class_of
from paribus.tokenization.vocabulary import TOKEN

if TYPE_CHECKING:
    from paribus.tokenization.language_model import CausalLanguageModel


Reals = npt.NDArray[np.float64]

KIND, FORMAT = "predictive_entropy", 1
_DECIMALS = 4
"""Decimals of entropies in bits; smaller differences are noise of float32 and make no maximum."""
_BREAKS = re.compile(f"([{re.escape(LINE_BREAKS)}])")
_PROBES = 400
_SUFFIXES = frozenset((".json", ".safetensors", ".txt", ".model"))


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
        if threshold is not None and (type(threshold) not in (int, float) or not math.isfinite(threshold)):
            raise ConfigurationError(f"pretokenizer.threshold: {threshold!r}; bits (a finite number) or null is needed")
        self.model = Path(model).absolute()
        self.threshold = threshold
        self.device = device
        self.digest = model_digest(self.model)
        """SHA-256 of the model's files; see `model_digest`."""
        self._loaded: tuple[ParibusCharacterIds | HuggingFaceCharacterIds, CausalLanguageModel] | None = None

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`. Its lines are computed in batches.

        Raises ConfigurationError where the model's tokens are not characters, DataError for a character that they
        cannot stand for.
        """
        lines = _BREAKS.split(text)
        nonempty = [line for line in lines[::2] if line]
        entropies = iter(self.entropies(nonempty)) if nonempty else iter(())
        pieces: list[str] = []
        for number, line in enumerate(lines):
            if number % 2:
                pieces.append(line)
            elif line:
                bounds = [0, *self.boundaries(next(entropies)), len(line)]
                pieces += [line[start:end] for start, end in pairwise(bounds)]
        return pieces

    def entropies(self, lines: list[str]) -> list[Reals]:
        """H in bits before the first character (NaN without a start token) and after each, shape (characters + 1,)."""
        characters, model = self._load()
        tokens = {character: characters.of(character) for character in set().union(*lines)}
        start = () if characters.start is None else (characters.start,)
        sequences = [[start, *map(tokens.__getitem__, line)] for line in lines]
        results: list[Reals] = []
        computed = model.entropies([list(chain(*parts)) for parts in sequences])
        for parts, after_ids in zip(sequences, computed, strict=True):
            entropies = np.concatenate([[np.nan], np.round(after_ids, _DECIMALS)])
            results.append(entropies[np.cumsum([len(part) for part in parts])])
        return results

    def boundaries(self, entropies: Reals) -> list[int]:
        """Numbers of characters after which a piece ends inside a line, from the entropies of that line."""
        before, here, after = entropies[:-2], entropies[1:-1], entropies[2:]
        peaks = (here > before) & (here > after)
        if self.threshold is not None:
            peaks &= here >= self.threshold
        boundaries: list[int] = (np.flatnonzero(peaks) + 1).tolist()
        return boundaries

    def to_state(self) -> dict[str, Any]:
        """State as JSON values; the model is named by its directory and the digest of its files."""
        named = {"kind": KIND, "format": FORMAT, "model": str(self.model)}
        return named | {"digest": self.digest, "threshold": self.threshold}

    @classmethod
    def from_state(
        cls, state: Any, *, model: str | Path | None = None, device: str = "cpu"
    ) -> "PredictiveEntropySpans":
        """Read what `to_state` gave, with the model of the state's directory or of `model`.

        DataError for another state, a model that is not there, or one whose files are not those of the state.
        """
        check_state(state, KIND, FORMAT)
        if not isinstance(state.get("model"), str) or not isinstance(state.get("digest"), str):
            raise DataError(f"the state of pre-tokenizer {KIND!r} lacks the model's directory or its digest")
        try:
            pretokenizer = cls(model or state["model"], threshold=state.get("threshold"), device=device)
        except ConfigurationError as error:
            raise DataError(f"the state of pre-tokenizer {KIND!r} is malformed: {error}") from error
        if pretokenizer.digest != state["digest"]:
            raise DataError(
                f"{pretokenizer.model} is not the language model the pre-tokenizer was made with: its files have the "
                f"digest {pretokenizer.digest}, not {state['digest']}; give the directory of that model"
            )
        return pretokenizer

    def _load(self) -> "tuple[ParibusCharacterIds | HuggingFaceCharacterIds, CausalLanguageModel]":
        if self._loaded is None:
            from paribus.tokenization.language_model import CausalLanguageModel

            is_paribus = (self.model / "tokenizer" / "settings.json").is_file()
            ids = ParibusCharacterIds(self.model) if is_paribus else HuggingFaceCharacterIds(self.model)
            self._loaded = ids, CausalLanguageModel(self.model, self.device)
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_loaded": None}


class ParibusCharacterIds:
    """Ids that a language model reads for a character, by the paribus tokenizer in `directory`/tokenizer.

    Its first special token (`start`) stands before a text. ConfigurationError, naming a token, where tokens are not
    single characters.
    """

    def __init__(self, directory: Path) -> None:
        vocabulary, settings = read(directory / "tokenizer")
        kinds = vocabulary.columns.kinds[vocabulary.rank_of_id]
        special = {entry.bytes.decode(): entry.id for entry in vocabulary.by_id if entry.kind == "special"}
        self.start = next((special[name] for name in settings.special_tokens), None)
        if settings.unit != "character" or (kinds == TOKEN).any():
            longer = vocabulary.by_id[int((kinds == TOKEN).argmax())]
            example = f"a token is {longer.bytes!r}" if (kinds == TOKEN).any() else "its units are bytes"
            raise ConfigurationError(
                f"pretokenizer.model: the tokens of {directory} are not characters ({example}); train with "
                "tokenizer.unit=character and a tokenizer.vocab_size that leaves no room for merges"
            )
        by_pattern = settings.pretokenizer if settings.pretokenizer in PATTERNS else "none"
        self._encoding = Encoding(vocabulary, replace(settings, pretokenizer=by_pattern), None)

    def of(self, character: str) -> tuple[int, ...]:
        """Ids of a character's unit, else of what the tokenizer makes of it, such as bytes; DataError for nothing."""
        return tuple(self._encoding.encode(character).tolist())


class HuggingFaceCharacterIds:
    """Ids of a Hugging Face tokenizer that cuts the script of its vocabulary into characters, as Chinese BERT's does.

    A character that it drops or cuts up is unknown to the model.
    """

    def __init__(self, directory: Path) -> None:
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        except (OSError, ValueError) as error:
            raise DataError(f"{directory}: no tokenizer that can be loaded ({error})") from error
        self._unknown: int | None = self._tokenizer.unk_token_id
        starts = (self._tokenizer.cls_token_id, self._tokenizer.bos_token_id)
        self.start = next((start for start in starts if start is not None), None)
        self._check(directory)

    def of(self, character: str) -> tuple[int, ...]:
        """Ids of a character's token, else of the unknown one; DataError where the tokenizer has none."""
        surrogate = 0xD800 <= ord(character) <= 0xDFFF
        ids = [] if surrogate else self._encode(character)
        if len(ids) == 1:
            return tuple(ids)
        if self._unknown is None:
            raise DataError(
                f"character {character!r} (U+{ord(character):04X}) is {len(ids)} tokens of the language model, and its "
                "tokenizer has no unknown token"
            )
        return (self._unknown,)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _check(self, directory: Path) -> None:
        """Refuse a tokenizer that does not cut its strings of ideographs (or else of letters) into characters."""
        strings = sorted(self._tokenizer.get_vocab(), key=lambda string: (-len(string), string))
        kinds = ([string for string in strings if _all_of(string, kind)] for kind in (IDEOGRAPH, LETTER))
        probes = next((of_kind for of_kind in kinds if of_kind), [])
        for probe in [*probes[:_PROBES], "".join(probes[-_PROBES:])]:
            tokens = len(self._encode(probe))
            if tokens != len(probe) or not probe:
                raise ConfigurationError(
                    f"pretokenizer.model: the tokens of {directory} are not characters: the {len(probe)} characters of "
                    f"{probe[:10]!r} are {tokens} tokens; a model such as a Chinese GPT-2 with BERT's vocabulary is "
                    "needed"
                )


def _all_of(string: str, kind: int) -> bool:
    return bool(string) and all(class_of(character) == kind for character in string)


def model_digest(directory: Path) -> str:
    """SHA-256 over names and contents of the files of a model and its tokenizer: configuration, weights, vocabulary.

    DataError for a directory without a model.
    """
    if not (directory / "config.json").is_file():
        raise DataError(f"{directory}: no model directory; a Hugging Face directory has a config.json")
    files = {
        path.relative_to(directory).as_posix(): path
        for path in directory.rglob("*")
        if path.suffix in _SUFFIXES and path.is_file()
    }
    digest = hashlib.sha256()
    for name in sorted(files):
        with files[name].open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
