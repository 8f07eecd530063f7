"""Our tokenizers as `transformers` tokenizers with identical ids. Imported only when asked for.

Importing this module also tells `AutoTokenizer` of `ParibusTokenizer`. transformers has no plug-ins that it would find
by itself, so whoever loads the directory of one needs the line `import paribus.tokenization.interchange.huggingface`.

A special token that is spelled in a text becomes that token, as everywhere in transformers; here alone a corpus has
text there. `split_special_tokens=True` gives the ids of a corpus.
"""

import logging
from typing import Any

import tokenizers
from transformers import AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from paribus.tokenization.interchange.huggingface_json import obstacles, tokenizer_json, unknown_name
from paribus.tokenization.interchange.huggingface_python import ParibusTokenizer, common_options
from paribus.tokenization.interchange.huggingface_sample import disagreement
from paribus.tokenization.text_tokenizer import TextTokenizer

logger = logging.getLogger(__name__)


def to_huggingface(tok: TextTokenizer, **options: Any) -> PreTrainedTokenizerBase:
    """A fast tokenizer where `tokenizer.json` says the same, as checked on a sample, else a `ParibusTokenizer`.

    `options` are those of transformers' tokenizers, such as `model_max_length` and `pad_token`.
    """
    if obstacles(tok):
        return ParibusTokenizer(tok, **options)
    backend = tokenizers.Tokenizer.from_str(tokenizer_json(tok))
    differing = disagreement(tok, backend)
    if differing is not None:
        logger.warning("tokenizer.json gives other ids for %.60r; ParibusTokenizer is used instead", differing)
        return ParibusTokenizer(tok, **options)
    fast: PreTrainedTokenizerBase = PreTrainedTokenizerFast(
        tokenizer_object=backend, **common_options(tok, unknown_name(tok)) | options
    )
    return fast


class ParibusTokenizerConfig(PreTrainedConfig):  # type: ignore[misc]
    """Nothing but the key under which transformers registers a tokenizer class."""

    model_type = "paribus_tokenizer"


AutoTokenizer.register(ParibusTokenizerConfig, tokenizer_class=ParibusTokenizer, exist_ok=True)
