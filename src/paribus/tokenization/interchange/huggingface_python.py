"""Any of our tokenizers behind the interface of a tokenizer of `transformers` that is written in Python."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizer

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.interchange.added_tokens import AddedTokens, Segment
from paribus.tokenization.interchange.offsets import Offsets
from paribus.tokenization.interchange.retraining import retrained
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary.names import distinct_names


def common_options(tok: TextTokenizer, unknown: str | None) -> dict[str, Any]:
    """What transformers is told of every tokenizer: its special tokens, the first of which ends a document."""
    special = list(tok.settings.special_tokens)
    options: dict[str, Any] = {"clean_up_tokenization_spaces": False}
    if special:
        options |= {"eos_token": special[0], "extra_special_tokens": special[1:]}
    return options if unknown is None else options | {"unk_token": unknown}


class PlacedId(int):
    """An id that brings the characters it stands for with it through truncation and padding."""

    span: tuple[int, int]

    @classmethod
    def at(cls, identity: int, span: tuple[int, int]) -> "PlacedId":
        """The id with its span."""
        placed = cls(identity)
        placed.span = span
        return placed


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
        added: dict[str, int] = self._added_tokens_encoder
        return self._ids | added

    def tokenize(self, text: str, **options: Any) -> Sequence[str | PlacedId]:
        """Names of the tokens; within `__call__` with `return_offsets_mapping` their ids and places instead."""
        split_special = bool(options.get("split_special_tokens", self.split_special_tokens))
        segments = self._added.segments(text, split_special=split_special)
        if options.get("return_offsets_mapping"):
            return [placed for segment in segments for placed in self._placed(text, segment)]
        found: list[str | PlacedId] = []
        for part in segments:
            found += self._tokenize(text[part.begin : part.end]) if part.token is None else [part.token]
        return found

    def _placed(self, text: str, segment: Segment) -> Iterator[PlacedId]:
        begin, end = segment.begin, segment.end
        if segment.token is not None:
            yield PlacedId.at(self._added_tokens_encoder[segment.token], (begin, end))
            return
        ids = self.paribus.encode(text[begin:end]).tolist()
        for identity, (first, after) in zip(ids, self._offsets.spans(text[begin:end], ids), strict=True):
            yield PlacedId.at(identity, (begin + first, begin + after))

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [self._names[identity] for identity in self.paribus.encode(text).tolist()]

    @cached_property
    def _offsets(self) -> Offsets:
        return Offsets(self.paribus)

    def _update_trie(self, unique_no_split_tokens: list[str] | None = None) -> None:
        """Called by transformers whenever tokens were added."""
        self._added = AddedTokens(self._added_tokens_decoder.values())

    def _encode_plus(self, *arguments: Any, return_offsets_mapping: bool = False, **options: Any) -> BatchEncoding:
        """As in `transformers`, with the places of tokens, (0, 0) for padding; one text or, by itself again, many."""
        if not return_offsets_mapping:
            return super()._encode_plus(*arguments, **options)
        _ = self._offsets
        tensors = options.pop("return_tensors", None)
        encoded = super()._encode_plus(*arguments, **options, return_tensors=None, return_offsets_mapping=True)
        several = "offset_mapping" in encoded
        if not several:
            ids = encoded["input_ids"]
            encoded["offset_mapping"] = [getattr(identity, "span", (0, 0)) for identity in ids]
            encoded["input_ids"] = list(map(int, ids))
        return BatchEncoding(dict(encoded), tensor_type=tensors, prepend_batch_axis=not several)

    def _pad(self, encoded_inputs: Any, *arguments: Any, padding_side: str | None = None, **options: Any) -> Any:
        """As in `transformers`, the places of tokens too."""
        length = len(encoded_inputs["input_ids"])
        padded = super()._pad(encoded_inputs, *arguments, padding_side=padding_side, **options)
        if "offset_mapping" in padded:
            padding = [(0, 0)] * (len(padded["input_ids"]) - length)
            places, left = padded["offset_mapping"], (padding_side or self.padding_side) == "left"
            padded["offset_mapping"] = padding + places if left else places + padding
        return padded

    def _convert_token_to_id_with_added_voc(self, token: str | PlacedId) -> int | None:
        if isinstance(token, PlacedId):
            return token
        identity: int | None = super()._convert_token_to_id_with_added_voc(token)
        return identity

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text of tokens; those added to this object after training stand for their names."""
        tok, ids = self.paribus, self._ids
        if ids.keys() >= set(tokens):
            return tok.decode([ids[token] for token in tokens])
        space = b" " if tok.settings.spaced else b""
        spelled = b"".join([self._texts.get(token, space + token.encode()) for token in tokens])
        return spelled[tok.begins_with_space and spelled.startswith(b" ") :].decode("utf-8", errors="replace")

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """What ordinary tokens stand for, by name."""
        special = self.paribus.special_tokens
        named = zip(self._names, self.paribus.token_bytes(), strict=True)
        return {name: text for name, text in named if name not in special}

    def train_new_from_iterator(
        self,
        text_iterator: Iterable[str | list[str]],
        vocab_size: int,
        length: int | None = None,
        new_special_tokens: Sequence[Any] | None = None,
        special_tokens_map: Mapping[str, str] | None = None,
    ) -> "ParibusTokenizer":
        """A tokenizer of the same algorithm, pre-tokenizer and encoder trained on other texts, or lists of texts.

        Special tokens stay, by the names that `special_tokens_map` gives them, and are followed by new ones; `length`
        is taken and not needed. ConfigurationError for an imported tokenizer that normalizes text.
        """
        renamed = {name: (special_tokens_map or {}).get(name, name) for name in self._every_special_token()}
        special = dict.fromkeys([*renamed.values(), *map(str, new_special_tokens or ())])
        made = retrained(self.paribus, text_iterator, vocab_size, tuple(special))
        kept = ("split_special_tokens", "model_max_length", "padding_side", "truncation_side", "chat_template")
        options = {name: getattr(self, name) for name in kept}
        if self.pad_token is not None:
            options["pad_token"] = renamed[self.pad_token]
        return type(self)(made, **options)

    def _every_special_token(self) -> list[str]:
        """Those of the vocabulary in its order, then those that were added."""
        own, known = self.paribus.settings.special_tokens, self.all_special_tokens
        return list(dict.fromkeys([*own, *(name for name in known if name != self.unk_token)]))

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
