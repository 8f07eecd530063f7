"""Tokenizers that were trained elsewhere, imported: whether their ids are those of the library that they come from.

python benchmarks/imported_tokenizers.py --tokenizers FILE... --texts FILE... [--documents 1500]
prints a Markdown table. A tokenizer is a `.model` of SentencePiece or a `vocab.txt` of BERT, uncased where
`tokenizer_config.json` beside it does not say otherwise. Of a `tokenizer.json` that was made of a model `Unigram` of
SentencePiece, such as T5's, the `.model` is put together again, with SentencePiece's defaults for what is not in it.
Texts are JSON lines with a field `text`, or lines, compressed or not; of a file of JSON lines that many documents are
taken, whole and line by line, and all of them as one text.
"""

import argparse
import base64
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tables import table
from texts import documents

from paribus.tokenization.existing import open_existing

KINDS = ModelProto.SentencePiece
HEAD = ("tokenizer", "SHA-256 begins", "tokens", "texts", "ids", "texts with other ids")


def main(tokenizers: Sequence[Path], files: Sequence[Path], number: int) -> None:
    """Print the table."""
    texts = [text for file in files for text in texts_of(file, number)]
    sys.stdout.write(table(HEAD, [row(path, texts) for path in tokenizers]))


def texts_of(file: Path, number: int) -> Iterator[str]:
    """Lines; or documents whole, line by line, and all as one text."""
    if ".jsonl" not in file.suffixes:
        yield from documents(file, lines=True)
        return
    read = list(islice(documents(file), number))
    yield "\n".join(read)
    for text in read:
        yield text
        yield from text.split("\n")


def row(path: Path, texts: Sequence[str]) -> list[str]:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        opened = put_together(path, Path(scratch)) if path.suffix == ".json" else path
        ours, theirs = open_existing(opened), library_encoder(opened)
    ids = differ = 0
    for text in texts:
        expected = theirs(text)
        ids, differ = ids + len(expected), differ + (ours.encode(text).tolist() != expected)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    name = path.stem if path.suffix == ".model" else path.parent.name
    return [name, digest, f"{ours.vocab_size:,}", f"{len(texts):,}", f"{ids:,}", f"{differ:,}"]


def put_together(path: Path, directory: Path) -> Path:
    """The `.model` of pieces, scores and character map of a `tokenizer.json`.

    Special tokens among the pieces were control symbols; those behind the last piece were added later.
    """
    whole = json.loads(path.read_text(encoding="utf-8"))
    steps = whole["normalizer"].get("normalizers", [whole["normalizer"]])
    special = {token["content"] for token in whole["added_tokens"] if token["special"]}
    pieces, unknown, made = whole["model"]["vocab"], whole["model"]["unk_id"], ModelProto()
    while pieces[-1][0] in special:
        pieces.pop()
    for number, (piece, score) in enumerate(pieces):
        kind = KINDS.UNKNOWN if number == unknown else KINDS.CONTROL if piece in special else KINDS.NORMAL
        made.pieces.add(piece=piece, score=score, type=kind)
    (encoded,) = (step["precompiled_charsmap"] for step in steps if step["type"] == "Precompiled")
    made.normalizer_spec.precompiled_charsmap = base64.b64decode(encoded)
    made.trainer_spec.vocab_size, made.trainer_spec.unk_id = len(pieces), unknown
    model = directory / "put_together.model"
    model.write_bytes(made.SerializeToString())
    return model


def library_encoder(path: Path) -> Callable[[str], list[int]]:
    """That of SentencePiece or transformers."""
    if path.suffix == ".model":
        pieces = SentencePieceProcessor(model_file=str(path))
        return lambda text: list(pieces.encode(text))
    from transformers import BertTokenizer

    words = BertTokenizer.from_pretrained(path.parent)
    return lambda text: words.encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokenizers", nargs="+", type=Path, required=True, help=".model, vocab.txt, tokenizer.json")
    parser.add_argument("--texts", nargs="+", type=Path, required=True, help="JSON lines, or lines")
    parser.add_argument("--documents", type=int, default=1500, help="of each file of JSON lines")
    given = parser.parse_args()
    main(given.tokenizers, given.texts, given.documents)
