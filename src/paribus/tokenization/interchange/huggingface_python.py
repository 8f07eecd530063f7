"""Any of our tokenizers behind the interface of a tokenizer of `transformers` that is written in Python."""

from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary.names import distinct_names


def common_options(tok: TextTokenizer, unknown: str | None) -> dict[str, Any]:
    """What transformers is told of every tokenizer: its special tokens, the first of which ends a document."""
    special = list(tok.settings.special_tokens)
    options: dict[str, Any] = {"clean_up_tokenization_spaces": False}
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
        super().__init__(**{"special_tokens_pattern": "none"} | common_options(self.paribus, unknown) | options)

    @property
    def vocab_size(self) -> int:
        return self.paribus.vocab_size

    def get_vocab(self) -> dict[str, int]:
        added: dict[str, int] = self.added_tokens_encoder
        return self._ids | added

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [self._names[identity] for identity in self.paribus.encode(text).tolist()]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text of tokens; those added to this object after training stand for their names."""
        tok = self.paribus
        space = b" " if tok.settings.spaced else b""
        spelled = b"".join([self._texts.get(token, space + token.encode()) for token in tokens])
        return spelled[tok.begins_with_space and spelled.startswith(b" ") :].decode("utf-8", errors="replace")

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """What ordinary tokens stand for, by name."""
        special = self.paribus.special_tokens
        named = zip(self._names, self.paribus.token_bytes(), strict=True)
        return {name: text for name, text in named if name not in special}

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
