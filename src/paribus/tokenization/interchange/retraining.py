"""The same kind of tokenizer trained on other text, as `train_new_from_iterator` of transformers has it."""

import dataclasses
from collections.abc import Iterable, Iterator

from paribus.errors import ConfigurationError
from paribus.tokenization.learn.train import TrainingRequest, count_pretokens, train_vocabulary
from paribus.tokenization.pretokenize.cutter import NORMALIZING, Cutter
from paribus.tokenization.pretokenize.patterns import Pretokenizer
from paribus.tokenization.pretokenize.spans.pretokenizer import SpanPretokenizer
from paribus.tokenization.text_tokenizer import TextTokenizer


def retrained(
    tok: TextTokenizer, texts: Iterable[str | list[str]], vocab_size: int, special_tokens: tuple[str, ...]
) -> TextTokenizer:
    """Algorithm, units, pre-tokenizer and encoder of `tok` with a vocabulary of `texts`, single ones or batches.

    Spans are found anew in the texts, which are then held in memory; a language model that cuts stays the same, and
    Unigram removes its default share a round. ConfigurationError for an imported tokenizer that normalizes text, or a
    size below the alphabet. Warns (UserWarning) where training ended below `vocab_size`.
    """
    settings = tok.settings
    if settings.pretokenizer in NORMALIZING:
        raise ConfigurationError(
            f"train_new_from_iterator: a tokenizer imported with pretokenizer={settings.pretokenizer} is not trained "
            "here; train one with the library it came from and import that, or use Tokenizer.train"
        )
    listed = _single_texts(texts)
    cutter = tok.cutter
    if isinstance(cutter, SpanPretokenizer):
        listed = iter(held := list(listed))
        cutter = SpanPretokenizer.train(held, cutter.settings)
    request = TrainingRequest(
        algorithm=settings.algorithm,
        vocab_size=vocab_size,
        unit=settings.unit,
        unknown=settings.unknown if settings.unit == "character" else None,
        special_tokens=special_tokens,
        continuation=settings.pretokenizer == "stripped",
    )
    return _trained(tok, request, listed, cutter)


def _trained(
    tok: TextTokenizer, request: TrainingRequest, texts: Iterator[str], cutter: Cutter | None
) -> TextTokenizer:
    learns = request.algorithm != "bytes"
    words = count_pretokens(texts if learns else (), cutter or Pretokenizer(tok.settings.pretokenizer))
    trained = train_vocabulary(words, request)
    trained.warn_of_fewer(request, stacklevel=4)
    settings = dataclasses.replace(tok.settings, special_tokens=request.special_tokens)
    return TextTokenizer(trained.vocabulary, trained.adopted(settings), cutter)


def _single_texts(texts: Iterable[str | list[str]]) -> Iterator[str]:
    if isinstance(texts, str | bytes):
        raise TypeError("train_new_from_iterator takes an iterator of texts or of lists of texts, not a single text")
    for given in texts:
        yield from (given,) if isinstance(given, str) else given
