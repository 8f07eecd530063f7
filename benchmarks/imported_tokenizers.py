"""Tokenizers that were trained elsewhere, imported: whether their ids are those of the library that they come from.

python benchmarks/imported_tokenizers.py --tokenizers FILE... --texts FILE... [--documents 1500]
prints a Markdown table. A tokenizer is a `.model` of SentencePiece or a `vocab.txt` of BERT, uncased where
`tokenizer_config.json` beside it does not say otherwise. Texts are JSON lines with a field `text`, or lines, compressed
or not; of a file of JSON lines that many documents are taken, whole and line by line, and all of them as one text.
"""

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

from peers.table import table
from sentencepiece import SentencePieceProcessor

from paribus.tokenization.interchange.existing import open_existing

Encode = Callable[[str], list[int]]


def main(tokenizers: Sequence[Path], files: Sequence[Path], documents: int) -> None:
    """Print the table."""
    texts = [text for file in files for text in _texts(file, documents)]
    head = ["tokenizer", "SHA-256 begins", "tokens", "texts", "ids", "texts with other ids"]
    sys.stdout.write(table(head, [_row(path, texts) for path in tokenizers]))


def _row(path: Path, texts: Sequence[str]) -> list[str]:
    ours, theirs = open_existing(path), _library(path)
    ids = differ = 0
    for text in texts:
        expected = theirs(text)
        ids, differ = ids + len(expected), differ + (ours.encode(text).tolist() != expected)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    name = path.stem if path.suffix == ".model" else path.parent.name
    return [name, digest, f"{ours.vocab_size:,}", f"{len(texts):,}", f"{ids:,}", f"{differ:,}"]


def _library(path: Path) -> Encode:
    if path.suffix == ".model":
        pieces = SentencePieceProcessor(model_file=str(path))
        return lambda text: list(pieces.encode(text))
    from transformers import BertTokenizer

    words = BertTokenizer.from_pretrained(path.parent)
    return lambda text: words.encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False)


def _texts(file: Path, documents: int) -> Iterator[str]:
    lines = _lines(file)
    if ".jsonl" not in file.suffixes:
        yield from lines
        return
    read = [json.loads(line)["text"] for line in islice(lines, documents)]
    yield "\n".join(read)
    for text in read:
        yield text
        yield from text.split("\n")


def _lines(file: Path) -> Iterator[str]:
    with _opened(file) as stream:
        for line in stream:
            yield line.removesuffix("\n")


def _opened(file: Path) -> IO[str]:
    if file.suffix == ".zst":
        import zstandard

        return zstandard.open(file, "rt", encoding="utf-8", newline="\n")
    opened: Callable[..., IO[str]] = gzip.open if file.suffix == ".gz" else open
    return opened(file, "rt", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokenizers", nargs="+", type=Path, required=True, help=".model files and vocab.txt files")
    parser.add_argument("--texts", nargs="+", type=Path, required=True, help="JSON lines, or lines")
    parser.add_argument("--documents", type=int, default=1500, help="of each file of JSON lines")
    given = parser.parse_args()
    main(given.tokenizers, given.texts, given.documents)
