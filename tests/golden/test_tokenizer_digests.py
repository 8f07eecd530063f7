"""Pinned digests of saved tokenizers: output that changes needs a new `code_version` of the stages."""

import hashlib
from pathlib import Path

import pytest

from paribus.tokenization import Tokenizer

TEXTS = [
    "In Arizona the zones of the Amazon are zonal; 12 zones, 345 zonal maps.\n",
    "Capitals aren't capital letters, and letters aren't capitals.\n\n    indented text\n",
    "naïve café, 東京 and Straße, again café\n",
] * 3
UNSEEN = "the zonalizations, amazonal capitalettersn't; indentarizona 東 cafés 2023"
DIGESTS = {
    "bpe": "29572b1145e69ade",
    "scaffold_bpe": "0d270b9605e0b3b7",
}
ENCODED = {
    ("bpe", "merge_rank"): "277e9dfe16708599",
    ("bpe", "longest_first"): "1f1eb3d6407f71b6",
    ("scaffold_bpe", "merge_rank"): "f2ed1a183911e5b8",
    ("scaffold_bpe", "longest_first"): "f2ed1a183911e5b8",
}


def train(algorithm: str) -> Tokenizer:
    return Tokenizer.train(TEXTS, algorithm=algorithm, vocab_size=285, special_tokens=["<|endoftext|>"])


def directory_digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("algorithm", DIGESTS)
def test_the_saved_tokenizer_is_the_pinned_one(algorithm: str, tmp_path: Path) -> None:
    train(algorithm).save(tmp_path)
    assert directory_digest(tmp_path) == DIGESTS[algorithm]


@pytest.mark.parametrize(("algorithm", "encoder"), ENCODED)
def test_the_encoded_texts_are_the_pinned_ones(algorithm: str, encoder: str) -> None:
    ids, _ = train(algorithm).with_encoder(encoder).encode_batch([*TEXTS, UNSEEN])
    assert hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()[:16] == ENCODED[algorithm, encoder]
