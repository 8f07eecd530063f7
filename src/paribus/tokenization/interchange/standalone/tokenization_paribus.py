"""A tokenizer that paribus trained, for transformers alone: the same ids, in plain Python, some fifty times slower.

Beside this file lies `tokenizer/`, as paribus saves a tokenizer. It is loaded by AutoTokenizer with trust_remote_code,
reads the JSON there and nothing else. With the package paribus installed it is not needed.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer

MARK, UNKNOWN = "## ", -1
BYTES = 0x110000
"""Fallback bytes come after the codepoints."""
Units = tuple[int, ...]
"""Twice the byte, codepoint or BYTES + byte, one more inside a word where the vocabulary tells that apart."""


class ParibusTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """Cuts text into pre-tokens and those into tokens, as `tokenizer/settings.json` says."""

    vocab_files_names = {  # noqa: RUF012
        f"{name}_file": f"tokenizer/{name}.json"
        for name in ("settings", "vocabulary", "merges", "pretokenizer", "unicode_classes")
    }
    model_input_names = ("input_ids", "attention_mask")

    def __init__(self, **options: Any) -> None:
        files = {name: options.pop(name, None) for name in self.vocab_files_names}
        self._files = {name.removesuffix("_file"): Path(path) for name, path in files.items() if path}
        self._vocabulary = Vocabulary(self._json("settings"), self._json("vocabulary"), self._json("merges"))
        self._ids = {name: identity for identity, name in enumerate(self._vocabulary.names)}
        self._known: dict[str, list[int]] = {}
        super().__init__(**{"special_tokens_pattern": "none"} | options)

    def _json(self, name: str) -> Any:
        return json.loads(self._files[name].read_text(encoding="utf-8"))

    @cached_property
    def _cut(self) -> Any:
        name = self._vocabulary.settings["pretokenizer"]
        if name == "spans":
            return spans(self._json("pretokenizer")["spans"])
        return pattern(name, self._json("unicode_classes")).findall

    @property
    def vocab_size(self) -> int:
        """Tokens of the model, those that were added to this object not counted."""
        return len(self._ids)

    def get_vocab(self) -> dict[str, int]:
        """Ids by name."""
        added: dict[str, int] = self._added_tokens_encoder
        return self._ids | added

    def _encode_plus(self, *arguments: Any, return_offsets_mapping: bool = False, **options: Any) -> Any:
        if return_offsets_mapping:
            raise NotImplementedError("this file knows no offsets; paribus does: Tokenizer.load(...).to_huggingface()")
        return super()._encode_plus(*arguments, **options)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        names = self._vocabulary.names
        return [names[identity] for piece in self._cut(text) for identity in self._piece(piece)]

    def _piece(self, piece: str) -> list[int]:
        if piece not in self._known:
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[piece] = self._vocabulary.encode(piece)
        return self._known[piece]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._vocabulary.names[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text of tokens; special and added ones stand for their names."""
        texts, spaced = self._vocabulary.texts, self._vocabulary.spaced
        space = b" " if spaced else b""
        spelled = [texts[self._ids[name]] if name in self._ids else space + name.encode() for name in tokens]
        joined = b"".join(spelled)
        return joined[spaced and joined.startswith(b" ") :].decode("utf-8", errors="replace")

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Copy the files that were read to `tokenizer/` inside the directory."""
        if filename_prefix:
            raise ValueError(f"filename_prefix={filename_prefix!r}: this tokenizer is a directory")
        target = Path(save_directory) / "tokenizer"
        target.mkdir(parents=True, exist_ok=True)
        copies = {path: target / f"{name}.json" for name, path in self._files.items()}
        for path, copy in copies.items():
            if path.resolve() != copy.resolve():
                shutil.copyfile(path, copy)
        return tuple(map(str, copies.values()))


class Vocabulary:
    """The tokens, their names and texts, and how a pre-token becomes ids."""

    def __init__(self, settings: dict[str, Any], rows: list[list[Any]], merges: list[list[int]]) -> None:
        self.settings = settings
        self.spaced = settings["pretokenizer"] == "stripped"
        fields = rows[0]
        entries = [dict(zip(fields, row, strict=True)) for row in rows[1:]]
        self._bytes = settings["unit"] == "byte"
        self._marked = any(entry["continuation"] for entry in entries)
        self._alphabet = alphabet(entries) if not self._bytes else set(range(256))
        self._ids = [entry["id"] for entry in entries]
        self._scores = [entry["score"] for entry in entries]
        spelled = {rank: self._spelled(entry) for rank, entry in enumerate(entries) if entry["kind"] != "special"}
        self._ranks = {units: rank for rank, units in spelled.items()}
        self._normal = {units: rank for units, rank in self._ranks.items() if self._ids[rank] >= 0}
        self._sought = self._ranks if settings["candidates"] == "expanded" else self._normal
        self._longest = max(map(len, self._sought), default=1)
        self._lengths = sorted(set(map(len, self._sought)), reverse=True)
        self._merges: dict[tuple[int, int], tuple[int, int]] = {}
        for place, (left, right, result) in enumerate(merges):
            self._merges.setdefault((left, right), (place, result))
        self._children = self._demolished(entries, spelled)
        dense = sorted((entry for entry in entries if entry["id"] >= 0), key=lambda entry: entry["id"])
        self.names = distinct_names(dense, in_bytes=self._bytes)
        self.texts = [self._text(entry) for entry in dense]

    def encode(self, piece: str) -> list[int]:
        """Ids of one pre-token."""
        units = self._units(piece)
        ranks = self._encoded(units)
        if ranks is None:
            ranks = [self._ranks[(UNKNOWN,)]]
        return [identity for rank in ranks for identity in self._children.get(rank) or (self._ids[rank],)]

    def _encoded(self, units: Units) -> list[int] | None:
        """Ranks of the tokens; None where the whole pre-token is unknown."""
        encoder = self.settings["encoder"]
        unknown = not self._bytes and self.settings["unknown"] == "token"
        if encoder == "merge_rank":
            whole = self._sought.get(units) if self.settings["whole_pretokens"] else None
            return self._merged(units) if whole is None else [whole]
        if encoder == "whole":
            whole = self._sought.get(units)
            return [whole] if whole is not None else None if unknown else self._single(units)
        if encoder == "longest_first":
            return self._longest_first(units)
        if encoder == "left_to_right":
            return None if unknown and UNKNOWN in units else self._left_to_right(units)
        return self._best_path(units, scored=encoder == "viterbi")

    def _units(self, piece: str) -> Units:
        found: list[int] = []
        for value in piece.encode() if self._bytes else map(ord, piece):
            if value in self._alphabet:
                found.append(2 * value)
            elif self.settings["unknown"] == "byte_fallback":
                found += [2 * (BYTES + byte) for byte in chr(value).encode()]
            elif self.settings["unknown"] == "token":
                found.append(UNKNOWN)
            else:
                raise ValueError(f"character {chr(value)!r} (U+{value:04X}) is not in the tokenizer's alphabet")
        return self._inside(found, begins=True)

    def _inside(self, units: list[int], *, begins: bool) -> Units:
        if not self._marked:
            return tuple(units)
        return tuple(unit + (unit != UNKNOWN and (place > 0 or not begins)) for place, unit in enumerate(units))

    def _spelled(self, entry: dict[str, Any]) -> Units:
        spelling = bytes.fromhex(entry["bytes"])
        if entry["kind"] == "unknown":
            return (UNKNOWN,)
        values = list(spelling if self._bytes else map(ord, spelling.decode())) if entry["kind"] != "fallback" else []
        units = [2 * value for value in values] or [2 * (BYTES + byte) for byte in spelling]
        return self._inside(units, begins=not entry["continuation"])

    def _single(self, units: Units) -> list[int]:
        return [self._ranks[(unit,)] for unit in units]

    def _merged(self, units: Units) -> list[int]:
        """The earliest-learned merge first, leftmost of equals, until none applies."""
        ranks, never = self._single(units), (len(self._merges), -1)
        while len(ranks) > 1:
            found = [self._merges.get(pair, never) for pair in pairwise(ranks)]
            best = min(found)
            if best == never:
                break
            place = found.index(best)
            ranks[place : place + 2] = [best[1]]
        return ranks

    def _longest_first(self, units: Units) -> list[int]:
        """The longest token anywhere, then the next longest in what is left, leftmost of equals."""
        taken, found = [False] * len(units), {}
        for length in self._lengths:
            for start in range(len(units) - length + 1):
                rank = self._sought.get(units[start : start + length])
                if rank is not None and not any(taken[start : start + length]):
                    taken[start : start + length] = [True] * length
                    found[start] = rank
        return [found[start] for start in sorted(found)]

    def _left_to_right(self, units: Units) -> list[int] | None:
        ranks, start = [], 0
        while start < len(units):
            ends = range(min(len(units), start + self._longest), start, -1)
            end = next((end for end in ends if units[start:end] in self._sought), None)
            if end is None:
                return None
            ranks.append(self._sought[units[start:end]])
            start = end
        return ranks

    def _best_path(self, units: Units, *, scored: bool) -> list[int] | None:
        """The largest summed score, then the fewest tokens, then the longest first one; sums run from the end."""
        size = len(units)
        best: list[tuple[float, int, int, int] | None] = [None] * size + [(0.0, 0, 0, -1)]
        for start in range(size - 1, -1, -1):
            options = []
            for end in range(start + 1, min(size, start + self._longest) + 1):
                rank, rest = self._sought.get(units[start:end]), best[end]
                if rank is not None and rest is not None:
                    score = self._scores[rank] if scored else 0.0
                    options.append((score + rest[0], rest[1] - 1, end - start, rank))
            best[start] = max(options, default=None)
        ranks, start = [], 0
        while start < size:
            chosen = best[start]
            if chosen is None:
                return None
            ranks.append(chosen[3])
            start += chosen[2]
        return ranks

    def _demolished(self, entries: list[dict[str, Any]], spelled: dict[int, Units]) -> dict[int, tuple[int, ...]]:
        """The ids that stand for each scaffold: its parents', or of the fewest normal tokens."""
        made: dict[int, tuple[int, ...]] = {}
        for rank, entry in enumerate(entries):
            if entry["id"] >= 0:
                continue
            if self.settings["demolish"] == "shortest":
                made[rank] = self._fewest(spelled[rank])
            else:
                parents = (entry["left"], entry["right"])
                made[rank] = sum((made.get(side) or (self._ids[side],) for side in parents), ())
        return made

    def _fewest(self, units: Units) -> tuple[int, ...]:
        best: list[tuple[int, ...]] = [()] * (len(units) + 1)
        for start in range(len(units) - 1, -1, -1):
            options = [
                (self._ids[self._normal[units[start:end]]], *best[end])
                for end in range(len(units), start, -1)
                if units[start:end] in self._normal and (best[end] or end == len(units))
            ]
            best[start] = min(options, key=len)
        return best[0]

    def _text(self, entry: dict[str, Any]) -> bytes:
        spelling = "\ufffd".encode() if entry["kind"] == "unknown" else bytes.fromhex(entry["bytes"])
        return b" " + spelling if self.spaced and not entry["continuation"] else spelling


def alphabet(entries: Sequence[dict[str, Any]]) -> set[int]:
    """The characters that are units, or where there are none, those of all tokens."""
    units = [entry for entry in entries if entry["kind"] == "unit"]
    tokens = units or [entry for entry in entries if entry["kind"] == "token"]
    return {ord(character) for entry in tokens for character in bytes.fromhex(entry["bytes"]).decode()}


def distinct_names(entries: Sequence[dict[str, Any]], *, in_bytes: bool) -> list[str]:
    """Names of tokens with bytes in GPT-2's characters; of two that are alike an ordinary one has its id behind it."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    table = [chr(byte if byte in printable else next(others)) for byte in range(256)]

    def name(entry: dict[str, Any]) -> str:
        spelling = bytes.fromhex(entry["bytes"])
        if entry["kind"] in ("special", "unknown"):
            return spelling.decode()
        mark = MARK if entry["continuation"] else ""
        if entry["kind"] == "fallback":
            return f"{mark}<0x{spelling[0]:02X}>"
        return mark + ("".join([table[byte] for byte in spelling]) if in_bytes else spelling.decode())

    names = [name(entry) for entry in entries]
    count = Counter(names)
    alone = [
        count[each] == 1 or entry["kind"] in ("special", "unknown") for each, entry in zip(names, entries, strict=True)
    ]
    return [
        each if single else f"{each}\ufdd0{place}"
        for place, (each, single) in enumerate(zip(names, alone, strict=True))
    ]


def pattern(name: str, classes: dict[str, list[list[int]]]) -> re.Pattern[str]:
    """What matches the pre-tokens; letters, marks, numbers and spaces are those of the Unicode version in `classes`."""
    letters, numbers, marks, space = (
        "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in classes[kind])
        for kind in ("letters", "numbers", "marks", "spaces")
    )
    word, other = f"[{letters}]+", f"[^{space}{letters}{numbers}]+"
    contractions, spaces = "'s|'t|'re|'ve|'m|'ll|'d", f"[{space}]+(?![^{space}])|[{space}]+"
    patterns = {
        "gpt2": f"{contractions}| ?{word}| ?[{numbers}]+| ?{other}|{spaces}",
        "gpt2_digits": f"{contractions}| ?{word}|[{numbers}]| ?{other}|{spaces}",
        "gpt4": f"(?i:{contractions})|[^\r\n{letters}{numbers}]?{word}|[{numbers}]{{1,3}}"
        f"| ?{other}[\r\n]*|[{space}]*[\r\n]+|{spaces}",
        "whitespace": f"[{space}][^{space}]*|[^{space}]+",
        "stripped": f"[^{space}]+",
        "none": "(?s:.+)",
        "punctuation": f"[^{letters}{marks}{numbers}][{letters}{marks}{numbers}]*|[{letters}{marks}{numbers}]+",
    }
    return re.compile(patterns[name])


def spans(known: Sequence[str]) -> Any:
    """What cuts a text from the left into the longest of the spans, or single characters."""
    lengths: dict[str, set[int]] = {}
    for span in known:
        lengths.setdefault(span[0], set()).add(len(span))
    sought, ordered = frozenset(known), {first: sorted(each, reverse=True) for first, each in lengths.items()}

    def cut(text: str) -> Iterator[str]:
        start = 0
        while start < len(text):
            sizes = ordered.get(text[start], ())
            length = next((size for size in sizes if text[start : start + size] in sought), 1)
            yield text[start : start + length]
            start += length

    return cut
