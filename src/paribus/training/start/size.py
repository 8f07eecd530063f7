"""Whether the size of the run's vocabulary can be right for a checkpoint, before either is read."""

from collections.abc import Iterator
from pathlib import Path

from paribus.config.groups.tokenization import BytesTokenizer, ExistingTokenizer
from paribus.config.schema import RunConfig

BYTES = 256


def size_problems(config: RunConfig, directory: Path, vocabulary: str) -> Iterator[tuple[str, str]]:
    """(config path, both sizes) where the run's vocabulary is smaller than the checkpoint's, or larger and not `added`.

    Training may end below `tokenizer.vocab_size`; a larger one is let through where the checkpoint's vocabulary did.
    DataError where one of the tokenizers is not there.
    """
    from paribus.tokenization.interchange.existing import ended_early, vocabulary_size

    path, ours = _size(config)
    theirs = vocabulary_size(directory)
    if ours < theirs:
        yield path, f"{ours} tokens are fewer than the {theirs} of {directory}, which must all be there"
    elif ours > theirs and vocabulary == "same" and not ended_early(directory):
        hint = "take that size, or start.vocabulary=added"
        yield path, f"{ours} tokens are more than the {theirs} of {directory}; {hint}"


def _size(config: RunConfig) -> tuple[str, int]:
    """Where the size is set, and the most tokens that there can be."""
    from paribus.tokenization.interchange.existing import vocabulary_size

    tokenizer = config.tokenizer
    if isinstance(tokenizer, ExistingTokenizer):
        return "tokenizer.path", vocabulary_size(Path(tokenizer.path))
    if isinstance(tokenizer, BytesTokenizer):
        return "tokenizer.special_tokens", BYTES + len(tokenizer.special_tokens)
    return "tokenizer.vocab_size", tokenizer.vocab_size
