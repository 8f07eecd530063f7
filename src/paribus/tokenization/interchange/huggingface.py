"""Our tokenizers as `transformers` tokenizers with identical ids. Imported only when asked for.

Importing this module also tells `AutoTokenizer` of `ParibusTokenizer`. transformers has no plug-ins that it would find
by itself, so whoever loads the directory of one needs the line `import paribus.tokenization.interchange.huggingface`.

Special tokens are registered with `split_special_tokens=True`: as everywhere here, their spelling in text is text.
"""

import logging
from pathlib import Path
from typing import Any

import tokenizers
from transformers import (
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.interchange.huggingface_json import obstacles, tokenizer_json, unknown_name
from paribus.tokenization.interchange.huggingface_sample import disagreement
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary.names import distinct_names

logger = logging.getLogger(__name__)


def to_huggingface(tok: TextTokenizer) -> PreTrainedTokenizerBase:
    """A fast tokenizer where `tokenizer.json` says the same, as checked on a sample, else a `ParibusTokenizer`."""
    if obstacles(tok):
        return ParibusTokenizer(tok)
    backend = tokenizers.Tokenizer.from_str(tokenizer_json(tok))
    differing = disagreement(tok, backend)
    if differing is not None:
        logger.warning("tokenizer.json gives other ids for %.60r; ParibusTokenizer is used instead", differing)
        return ParibusTokenizer(tok)
    fast: PreTrainedTokenizerBase = PreTrainedTokenizerFast(
        tokenizer_object=backend, **_options(tok, unknown_name(tok))
    )
    return fast


def _options(tok: TextTokenizer, unknown: str | None) -> dict[str, Any]:
    special = list(tok.settings.special_tokens)
    options: dict[str, Any] = {"split_special_tokens": True, "clean_up_tokenization_spaces": False}
    if special:
        options |= {"eos_token": special[0], "extra_special_tokens": special[1:]}
    return options if unknown is None else options | {"unk_token": unknown}


class ParibusTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """Any of our tokenizers behind the interface of `transformers`.

    Its directory holds `tokenizer_config.json` and, in `tokenizer/`, what `Tokenizer.save` writes.
    """

    vocab_files_names = {  # noqa: RUF012
        f"{name}_file": f"tokenizer/{name}.json" for name in ("settings", "vocabulary", "merges", "pretokenizer")
    }
    model_input_names = ("input_ids", "attention_mask")

    def __init__(
        self,
        tokenizer_object: TextTokenizer | None = None,
        *,
        settings_file: str | None = None,
        **options: Any,
    ) -> None:
        """`settings_file` is in the directory to read, where there is no `tokenizer_object`."""
        for name in self.vocab_files_names:
            options.pop(name, None)
        self.paribus = tokenizer_object or _load(settings_file)
        """The tokenizer that does the work."""
        self._names = distinct_names(self.paribus.vocabulary)
        self._ids = {name: identity for identity, name in enumerate(self._names)}
        unknown = next((entry.bytes.decode() for entry in self.paribus.vocabulary if entry.kind == "unknown"), None)
        super().__init__(**{"special_tokens_pattern": "none"} | _options(self.paribus, unknown) | options)

    @property
    def vocab_size(self) -> int:
        return self.paribus.vocab_size

    def get_vocab(self) -> dict[str, int]:
        added: dict[str, int] = self._added_tokens_encoder
        return self._ids | added

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [self._names[identity] for identity in self.paribus.encode(text).tolist()]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text of tokens; those added to this object after training stand for their names."""
        tok, ids = self.paribus, self._ids
        if ids.keys() >= set(tokens):
            return tok.decode([ids[token] for token in tokens])
        spelled = [tok.decode_bytes([ids[token]]) if token in ids else token.encode() for token in tokens]
        return b"".join(spelled).decode("utf-8", errors="replace")

    def save_pretrained(self, save_directory: str | Path, *arguments: Any, **options: Any) -> tuple[str, ...]:
        """As in `transformers`. ConfigurationError where the directory has the tokenizer.json of another tokenizer."""
        other = Path(save_directory) / "tokenizer.json"
        if other.exists():
            raise ConfigurationError(
                f"{other} is of another tokenizer, and transformers would read it wherever paribus is not imported; "
                "remove it, or save to another directory"
            )
        files: tuple[str, ...] = super().save_pretrained(save_directory, *arguments, **options)
        return files

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write `Tokenizer.save` to `tokenizer/` inside the directory."""
        if filename_prefix:
            raise ConfigurationError(f"filename_prefix={filename_prefix!r}: a paribus tokenizer is a directory")
        target = Path(save_directory) / "tokenizer"
        self.paribus.save(target)
        return tuple(sorted(map(str, target.iterdir())))


def _load(settings_file: str | None) -> TextTokenizer:
    if settings_file is None:
        raise DataError("no tokenizer/settings.json: a ParibusTokenizer reads the directory tokenizer/ that it wrote")
    return TextTokenizer.load(Path(settings_file).parent)


class ParibusTokenizerConfig(PreTrainedConfig):  # type: ignore[misc]
    """Nothing but the key under which transformers registers a tokenizer class."""

    model_type = "paribus_tokenizer"


AutoTokenizer.register(ParibusTokenizerConfig, tokenizer_class=ParibusTokenizer, exist_ok=True)
