"""Tokenizers: training, encoding, decoding, saving, statistics; and the stages `vocabulary` and `tokens`.

`pretokenize` cuts text into the pieces that tokens do not cross, as do `spans` and `predictive` by entropy. `train`
makes a `vocabulary` of their counts (`bpe`: BPE, Scaffold-BPE, WordPiece; `unigram`). `encode` turns text into ids by
merge ranks, longest token first (LBPE), from the left or by probability. `huggingface` and `sentencepiece` take the
tokenizers of other libraries, `export` gives ours to `transformers`. Compiled loops are in `kernels`.

What must hold: decoding gives the text back, byte for byte, unless a setting says that it loses something; the same
corpus gives the same vocabulary and the same ids whatever the number of threads; an export has identical ids or is
refused. A vocabulary remembers every token ever made, in order of creation, and which are in use.

The promised name loads on first use, so that importing a module of the package costs no more than that module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.tokenization.tokenizer import Tokenizer

__all__ = ["Tokenizer"]


def __getattr__(name: str) -> Any:
    if name == "Tokenizer":
        from paribus.tokenization.tokenizer import Tokenizer

        return Tokenizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
