"""Every trainer behind the same call: the documents of a text to a vocabulary, and a file of it.

Each is imported when it is called, being part of the whole process that is measured. What is compared is made
afterwards, by the function that comes back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.text import SEPARATOR, Text

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PACKAGES = {"paribus": "paribus.tokenization", "tokenizers_in_byte_order": "tokenizers"}
"""What a function imports, where it is not called like its package."""
Merges = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Learned:
    """Merges in order where the trainer gives them, else its tokens."""

    merges: Merges = field(default_factory=list)
    tokens: set[bytes] = field(default_factory=set)


Trained = Callable[[], Learned]


def paribus(text: Text, size: int, threads: int, output: Path, algorithm: str) -> Trained:
    """`Tokenizer.train` and `save`."""
    import inspect

    from paribus.tokenization import Tokenizer

    threaded = "threads" in inspect.signature(Tokenizer.train).parameters
    options: dict[str, Any] = {"threads": threads} if threaded else {}
    options |= {"algorithm": algorithm, "vocab_size": size, "pretokenizer": "gpt2"}
    tokenizer = Tokenizer.train(text.documents(), **options)
    tokenizer.save(output)
    return lambda: Learned(tokenizer.merges)


def tokenizers(text: Text, size: int, threads: int, output: Path, lines: bool = False) -> Trained:
    """`train_from_iterator` with the pre-tokens of GPT-2, of the documents or of the lines of the plain file."""
    import tokenizers as peer
    from tokenizers import models, pre_tokenizers, trainers

    tokenizer = peer.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(text.lines() if lines else text.documents(), trainer)
    tokenizer.save(str(output))
    return lambda: Learned(_from_characters(_merges(tokenizer)))


def tokenizers_in_byte_order(text: Text, size: int, threads: int, output: Path) -> Trained:
    """The same with each byte as a character of its own place in the order of bytes.

    Equal counts are settled by the order of the alphabet, which elsewhere in `tokenizers` is that of GPT-2's
    characters. The pre-tokens are made by `regex`.
    """
    import regex
    import tokenizers as peer
    from tokenizers import models, pre_tokenizers, trainers

    find, first = regex.compile(GPT2).findall, 0x4E00
    as_characters = dict(enumerate(range(first, first + 256))) | {0: ord(" ")}
    assert all("\0" not in document for document in text.documents())
    spelled = ("\0".join(find(item)).encode().decode("latin-1").translate(as_characters) for item in text.documents())
    tokenizer = peer.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    alphabet = [chr(first + byte) for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(spelled, trainer)
    as_bytes = {first + byte: byte for byte in range(256)}
    return lambda: Learned(
        [
            (left.translate(as_bytes).encode("latin-1"), right.translate(as_bytes).encode("latin-1"))
            for left, right in _merges(tokenizer)
        ]
    )


def gigabpe(text: Text, size: int, threads: int, output: Path) -> Trained:
    """`train_bpe`, which reads the file itself, line by line. Bytes that do not occur are not in its vocabulary."""
    import json

    import gigabpe as peer

    vocabulary, merges = peer.train_bpe([str(text.plain)], size, pretokenizer="bytelevel", threads=threads)
    output.write_text(json.dumps([vocabulary, merges]))
    return lambda: Learned(_from_characters(merges))


def gigatoken(text: Text, size: int, threads: int, output: Path) -> Trained:
    """`train_bpe` on a file, the separator being its special token and one more in the size."""
    import json

    import gigatoken as peer

    file, separator = str(text.separated), SEPARATOR.encode()
    _, merges = peer.train_bpe(file, size + 1, [SEPARATOR], tie_breaking="huggingface", separator=separator)
    output.write_text(json.dumps([[left.hex(), right.hex()] for left, right in merges]))
    return lambda: Learned(merges)


def rustbpe(text: Text, size: int, threads: int, output: Path) -> Trained:
    """`train_from_iterator`."""
    import json

    import rustbpe as peer

    tokenizer = peer.Tokenizer()
    tokenizer.train_from_iterator(text.documents(), size, pattern=GPT2)
    ranks = [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()]
    output.write_text(json.dumps([token.hex() for token in ranks]))
    return lambda: Learned(tokens=set(ranks))


def bpeasy(text: Text, size: int, threads: int, output: Path) -> Trained:
    """`train_bpe` without a longest token."""
    import bpeasy as peer

    vocabulary = peer.train_bpe(text.documents(), GPT2, 1 << 20, size)
    peer.save_vocab_to_tiktoken(vocabulary, str(output))
    return lambda: Learned(tokens=set(vocabulary))


def sentencepiece(text: Text, size: int, threads: int, output: Path) -> Trained:
    """Its BPE, which reads the file itself, line by line."""
    from peers.vocabularies import train_sentencepiece

    train_sentencepiece(text.plain, size, threads, "bpe", output)
    return Learned


def _merges(tokenizer: Any) -> list[tuple[str, str]]:
    import json

    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in merges]


def _from_characters(merges: list[tuple[str, str]]) -> Merges:
    """Merges written in the characters that stand for bytes in GPT-2's vocabulary."""
    from peers.vocabularies import byte_values

    values = byte_values()
    return [(bytes(map(values.__getitem__, left)), bytes(map(values.__getitem__, right))) for left, right in merges]
