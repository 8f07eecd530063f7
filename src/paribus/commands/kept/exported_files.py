"""What an exported model says beyond its checkpoint, so that transformers' defaults are right for it.

A checkpoint in the store is read by trainings and evaluations, which say all of this themselves.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from paribus.store.files import read_object, read_object_if_any, write_json

_CONFIG, _GENERATION, _TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
_PADDING = re.compile(r"\W*pad(ding)?\W*", re.IGNORECASE)


def complete(directory: Path) -> None:
    """Have the model in `directory` generate with a cache, and its tokenizer pad and know the context length.

    `config.json` gets no token for padding: transformers never trains the embedding of that one, and mostly it is the
    token that ends a document.
    """
    from paribus.tokenization.text_tokenizer import TextTokenizer

    special = TextTokenizer.load(directory / "tokenizer").special_tokens
    padding = pad_token(special)
    config = read_object(directory / _CONFIG) | {"use_cache": True}
    write_json(directory / _CONFIG, config)
    generation = {"eos_token_id": config["eos_token_id"], "pad_token_id": special[padding], "use_cache": True}
    write_json(directory / _GENERATION, read_object_if_any(directory / _GENERATION) | generation)
    # The spelling of a special token is text in a corpus; for who prompts a model it is the token, as everywhere there.
    habits = {
        "model_max_length": config["max_position_embeddings"],
        "pad_token": padding,
        "split_special_tokens": False,
    }
    write_json(directory / _TOKENIZER, read_object(directory / _TOKENIZER) | habits)


def pad_token(special_tokens: Iterable[str]) -> str:
    """The special token that is called padding, else the first, which ends a document."""
    names = list(special_tokens)
    return next((name for name in names if _PADDING.fullmatch(name)), names[0])
