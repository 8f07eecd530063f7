"""Tokenizers of language models whose tokens are characters: the ids of a character."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.encode.encoding import Encoding
from paribus.tokenization.pretokenize.patterns import PATTERNS
from paribus.tokenization.pretokenize.spans.codes import IDEOGRAPH, LETTER, class_of
from paribus.tokenization.vocabulary.files import read
from paribus.tokenization.vocabulary.vocabulary import TOKEN

_PROBES = 400


class CharacterIds(Protocol):
    """What a causal language model reads for a character."""

    start: int | None
    """Id that stands before a text, where the model knows one."""

    def of(self, character: str) -> tuple[int, ...]:
        """Id of the token that `character` is; several only where it is outside the alphabet and becomes its bytes."""


def character_ids(directory: Path) -> CharacterIds:
    """Those of the paribus tokenizer in `directory`/tokenizer, or of the Hugging Face tokenizer in `directory`.

    Raises ConfigurationError, naming a token, where tokens are not single characters.
    """
    if (directory / "tokenizer" / "settings.json").is_file():
        return ParibusCharacterIds(directory)
    return HuggingFaceCharacterIds(directory)


class ParibusCharacterIds:
    """Ids of a paribus tokenizer of character units without merges; its first special token stands before a text."""

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
        """Its unit, else what the tokenizer makes of it; DataError where it can make nothing."""
        return tuple(self._encoding.encode(character).tolist())


class HuggingFaceCharacterIds:
    """Ids of a Hugging Face tokenizer that cuts the script of its vocabulary into characters, as those of Chinese BERT
    models do. A character that it drops or cuts up is unknown to the model."""

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
        """Its token, else the unknown token; DataError where the tokenizer has none."""
        surrogate = 0xD800 <= ord(character) <= 0xDFFF
        ids = [] if surrogate else self._encoded(character)
        if len(ids) == 1:
            return tuple(ids)
        if self._unknown is None:
            raise DataError(
                f"character {character!r} (U+{ord(character):04X}) is {len(ids)} tokens of the language model, and its "
                "tokenizer has no unknown token"
            )
        return (self._unknown,)

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _check(self, directory: Path) -> None:
        """The vocabulary's strings of ideographs (of letters, where it has none) must be cut into their characters."""
        strings = sorted(self._tokenizer.get_vocab(), key=lambda string: (-len(string), string))
        kinds = ([string for string in strings if _all_of(string, kind)] for kind in (IDEOGRAPH, LETTER))
        found = next((of_kind for of_kind in kinds if of_kind), [])
        for probe in [*found[:_PROBES], "".join(found[-_PROBES:])]:
            tokens = len(self._encoded(probe))
            if tokens != len(probe) or not probe:
                raise ConfigurationError(
                    f"pretokenizer.model: the tokens of {directory} are not characters: the {len(probe)} characters of "
                    f"{probe[:10]!r} are {tokens} tokens; a model such as a Chinese GPT-2 with BERT's vocabulary is "
                    "needed"
                )


def _all_of(string: str, kind: int) -> bool:
    return bool(string) and all(class_of(character) == kind for character in string)
