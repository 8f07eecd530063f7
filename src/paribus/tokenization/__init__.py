"""Tokenizers: training, encoding, decoding, saving, statistics.

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
