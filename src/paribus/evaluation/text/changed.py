"""Whether a tokenizer gives back the texts that are scored: of what it loses its model need not predict anything."""

from collections.abc import Iterable

from paribus.tokenization import Tokenizer


def changed_texts(tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """How many texts are others once they were encoded and decoded; 0 without a look where nothing can be lost."""
    if not tokenizer.settings.lossy:
        return 0
    return sum(tokenizer.decode(tokenizer.encode(text)) != text for text in texts)
