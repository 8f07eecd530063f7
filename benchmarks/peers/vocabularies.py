"""The vocabularies of a corpus, trained once before anything is measured, in the file format of each contestant."""

import base64
import json
from pathlib import Path
from typing import Any

from peers.text import Text

UNIGRAM_MEGABYTES = 10.0
"""Text that the Unigram and sentencepiece vocabularies are trained on, which would otherwise take most of the time."""
_PLAIN_TEXT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def prepare(text: Text, size: int, directory: Path) -> dict[str, str]:
    """Write all vocabularies into `directory`; returns why those that are missing could not be made."""
    from paribus.tokenization import Tokenizer

    directory.mkdir(parents=True)
    options: dict[str, Any] = {"vocab_size": size, "pretokenizer": "gpt2"}
    plain = Tokenizer.train(text.documents(), algorithm="bpe", **options)
    plain.save(directory / "bpe")
    _export(plain, directory)
    Tokenizer.train(text.documents(), algorithm="scaffold_bpe", **options).save(directory / "scaffold_bpe")
    missing = {}
    try:
        sample = text.documents(UNIGRAM_MEGABYTES)
        unigram: Any = "unigram"
        Tokenizer.train(sample, algorithm=unigram, encoder="viterbi", **options).save(directory / "unigram")
    except Exception as error:
        missing["unigram"] = f"{type(error).__name__}: {error}"
    missing |= _sentencepiece(text, size, directory)
    return missing


def _export(tokenizer: Any, directory: Path) -> None:
    """`tokenizer.json` and tiktoken's format.

    The pre-tokens are described as `ByteLevel`, which every peer reads; paribus itself may write them as a pattern.
    """
    tokenizer.to_huggingface().save_pretrained(directory / "huggingface")
    described = json.loads((directory / "huggingface" / "tokenizer.json").read_text())
    described["pre_tokenizer"] = _PLAIN_TEXT
    (directory / "tokenizer.json").write_text(json.dumps(described))
    values = byte_values()
    with (directory / "vocabulary.tiktoken").open("wb") as file:
        for name, identity in described["model"]["vocab"].items():
            token = base64.b64encode(bytes(map(values.__getitem__, name)))
            file.write(token + b" %d\n" % identity)


def _sentencepiece(text: Text, size: int, directory: Path) -> dict[str, str]:
    missing = {}
    sample = directory / "sample.txt"
    sample.write_text("\n".join(text.documents(UNIGRAM_MEGABYTES)), encoding="utf-8", newline="\n")
    for model in ("bpe", "unigram"):
        try:
            train_sentencepiece(sample, size, 1, model, directory / f"sentencepiece.{model}")
        except (ImportError, RuntimeError) as error:
            missing[f"sentencepiece.{model}"] = f"{type(error).__name__}: {error}"
    return missing


def train_sentencepiece(file: Path, size: int, threads: int, model: str, output: Path) -> None:
    """Train on the lines of a file, none of them too long, no text normalized."""
    import sentencepiece

    with output.open("wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            input=str(file),
            model_writer=writer,
            model_type=model,
            vocab_size=size,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=1.0,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=1 << 24,
            num_threads=threads,
            minloglevel=2,
        )


def byte_values() -> dict[str, int]:
    """The byte that each character of GPT-2's alphabet stands for."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + index): byte for index, byte in enumerate(hidden)}
