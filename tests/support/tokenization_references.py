"""Slow, obvious versions of the training algorithms, for comparison; the encoders' are in `encoder_references`."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import tokenizers
from tokenizers import models, pre_tokenizers, trainers


def count_pairs(words: list[tuple[list[int], int]]) -> Counter[tuple[int, int]]:
    counts: Counter[tuple[int, int]] = Counter()
    for symbols, count in words:
        for left, right in pairwise(symbols):
            counts[left, right] += count
    return counts


def count_symbols(words: list[tuple[list[int], int]]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for symbols, count in words:
        for symbol in symbols:
            counts[symbol] += count
    return counts


def replace(symbols: list[int], left: int, right: int, token: int) -> list[int]:
    made: list[int] = []
    position = 0
    while position < len(symbols):
        if symbols[position : position + 2] == [left, right]:
            made.append(token)
            position += 2
        else:
            made.append(symbols[position])
            position += 1
    return made


@dataclass
class ReferenceTraining:
    """Algorithm 1 of Scaffold-BPE, or BPE when `scaffolding` is off, by counting everything anew each step."""

    words: list[tuple[list[int], int]]
    tokens: list[str]
    units: int
    scaffolding: bool
    merges: list[tuple[int, int, int]] = field(default_factory=list)
    frequencies: dict[int, int] = field(default_factory=dict)
    scaffold: set[int] = field(default_factory=set)

    def head(self) -> tuple[int, bool, tuple[int, ...]] | None:
        live = count_symbols(self.words)
        queue = [(-count, False, pair) for pair, count in count_pairs(self.words).items()]
        queue += [(-live[token], True, (token,)) for token in self.scaffold if live[token]]
        return min(queue, default=None)

    def run(self, size: int) -> None:
        while len(self.tokens) - len(self.scaffold) < size and (head := self.head()) is not None:
            _, pushed_back, ranks = head
            if pushed_back:
                self.scaffold.remove(ranks[0])
            else:
                self.merge(ranks[0], ranks[1])

    def merge(self, left: int, right: int) -> None:
        string = self.tokens[left] + self.tokens[right]
        known = string in self.tokens
        if not known:
            self.tokens.append(string)
        token = self.tokens.index(string)
        if not any(merge[:2] == (left, right) for merge in self.merges):
            self.merges.append((left, right, token))
        before = count_symbols(self.words)[token]
        self.words = [(replace(symbols, left, right, token), count) for symbols, count in self.words]
        live = count_symbols(self.words)
        self.frequencies.setdefault(token, live[token] - before)
        if not self.scaffolding:
            return
        if token in self.scaffold and live[token] >= -self.head()[0]:
            self.scaffold.remove(token)
        for parent in (left, right):
            head = self.head()
            if parent >= self.units and head is not None and live[parent] < -head[0]:
                self.scaffold.add(parent)


def reference_training(
    words: Mapping[str, int], alphabet: Sequence[str], size: int, *, scaffolding: bool
) -> ReferenceTraining:
    ranks = {unit: rank for rank, unit in enumerate(alphabet)}
    as_symbols = [([ranks[unit] for unit in word], count) for word, count in words.items()]
    training = ReferenceTraining(as_symbols, list(alphabet), len(alphabet), scaffolding)
    training.run(size)
    return training


def huggingface_merges(words: Mapping[str, int], size: int) -> list[tuple[bytes, bytes]]:
    """Merges of Hugging Face's `BpeTrainer` on byte pre-tokens, the bytes as characters in byte order."""
    first, separator = 0x4E00, "|"

    def spelled(word: str) -> str:
        return "".join(chr(first + byte) for byte in word.encode("utf-8"))

    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Split(separator, "removed")
    alphabet = [chr(first + byte) for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False, special_tokens=[])
    lines = (separator.join([spelled(word)] * count) for word, count in words.items())
    backend.train_from_iterator(lines, trainer)
    merges = json.loads(backend.to_str())["model"]["merges"]
    return [tuple(bytes(ord(unit) - first for unit in side) for side in merge) for merge in merges]
