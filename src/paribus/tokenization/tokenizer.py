"""`Tokenizer`: a `TextTokenizer` that can be trained, exported to other libraries and imported from them."""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.config.groups.tokenization import natural_encoder
from paribus.errors import ConfigurationError
from paribus.tokenization.arguments import several_strings, stream_of_texts
from paribus.tokenization.bpe import Progress
from paribus.tokenization.counts import WordCounts
from paribus.tokenization.pretokenize import PatternPretokenizer, Pretokenizer
from paribus.tokenization.settings import Algorithm, Candidates, EncoderName, Settings, check_lossless
from paribus.tokenization.spans import SpanPretokenizer
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.train import TrainingRequest, count_pretokens, train_vocabulary
from paribus.tokenization.unigram import PRUNE
from paribus.tokenization.vocabulary import Demolish, UnitKind, Unknown

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Tokenizer(TextTokenizer):
    """Text to token ids and back. Made by `train`, `load`, `from_huggingface` or `from_tiktoken`; never changes.

    Special tokens have ids but are never matched inside text: their spelling in a document is ordinary text.
    """

    @classmethod
    def train(
        cls,
        texts: Iterable[str] | WordCounts,
        *,
        algorithm: Algorithm = "bpe",
        vocab_size: int | None = None,
        unit: UnitKind = "byte",
        pretokenizer: str | Pretokenizer = "gpt2_digits",
        encoder: EncoderName | None = None,
        special_tokens: Sequence[str] = (),
        unknown: Unknown | None = None,
        demolish: Demolish = "parents",
        candidates: Candidates = "normal",
        prune: float = PRUNE,
        lossless: bool = False,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> "Tokenizer":
        """Train on `texts`, or on counts of the pre-tokens that `pretokenizer` made of them.

        `pretokenizer` is a name of `PATTERNS`, `spans` (found in the texts with the default settings; all texts are
        then held in memory), or an object such as a `SpanPretokenizer`. `encoder=None` is the algorithm's own:
        left_to_right for WordPiece, viterbi for Unigram, whole for words, else merge_rank. `prune` is the share of the
        tokens that a round of Unigram removes.
        `vocab_size` counts units and special tokens; training ends below it when no pair is left (see
        `settings.stopped`), and `bytes` always has 256 tokens and the special ones. With character units, `unknown`
        says what a character outside the alphabet becomes: its bytes (`byte_fallback`, 256 more units), one unknown
        token (`token`), or an error (`refuse`); None is byte fallback where `vocab_size` has room for it. `progress` is
        called with the size reached. The result is the same for any number of `threads`.

        Warns (UserWarning) where training ended below `vocab_size`. Raises ConfigurationError for unknown names, a size
        below the alphabet and special tokens, or, with `lossless`, for settings that lose text; DataError for text that
        has no UTF-8; TypeError for a single string, or bytes, in place of texts.
        """
        if not isinstance(texts, WordCounts):
            texts = stream_of_texts(texts, "Tokenizer.train")
        if pretokenizer == "spans" and not isinstance(texts, WordCounts):
            texts = list(texts)
            pretokenizer = SpanPretokenizer.train(texts)
        name = pretokenizer if isinstance(pretokenizer, str) else str(pretokenizer.to_state()["kind"])
        if algorithm == "bytes" and name == "stripped":
            raise ConfigurationError("pretokenizer=stripped loses whitespace, which algorithm=bytes keeps; use none")
        request = TrainingRequest(
            algorithm=algorithm,
            vocab_size=vocab_size,
            unit="byte" if algorithm == "bytes" else unit,
            unknown=unknown,
            special_tokens=tuple(several_strings(special_tokens, "special_tokens")),
            prune=prune,
            continuation=name == "stripped",
        )
        settings = Settings(
            algorithm=algorithm,
            unit=request.unit,
            unknown=unknown or "byte_fallback",
            pretokenizer=name,
            encoder=encoder or natural_encoder(algorithm),
            candidates=candidates,
            demolish=demolish,
            special_tokens=request.special_tokens,
        )
        if lossless:
            check_lossless(settings)
        cutter = None if isinstance(pretokenizer, str) else pretokenizer
        if isinstance(texts, WordCounts):
            words = texts
        else:
            counted = () if algorithm == "bytes" else texts
            words = count_pretokens(counted, cutter or PatternPretokenizer(name), threads=threads)
        trained = train_vocabulary(words, request, progress)
        size = trained.vocabulary.size
        if algorithm != "bytes" and vocab_size is not None and size < vocab_size:
            warnings.warn(
                f"vocab_size={vocab_size} was asked for, and the texts gave {size} tokens: no pair is left to merge; "
                "give more text or ask for fewer",
                stacklevel=2,
            )
        settings = dataclasses.replace(settings, unknown=trained.unknown, stopped=trained.stopped)
        return cls(trained.vocabulary, settings, cutter)

    def to_huggingface(self, **options: Any) -> "PreTrainedTokenizerBase":
        """A `transformers` tokenizer with identical ids: a fast one where `tokenizer.json` can say the same, else a
        Python one around this object, whose directory AutoTokenizer reads after
        `import paribus.tokenization.export`.

        As everywhere in transformers, a special token that is spelled in a text becomes that token;
        `split_special_tokens=True`, here or in a call, leaves it text, as `encode` does. `options` are those of
        transformers' tokenizers, such as `pad_token`, `padding_side` or `model_max_length`.
        """
        from paribus.tokenization.export import to_huggingface

        return to_huggingface(self, **options)

    @classmethod
    def from_huggingface(cls, path: str | Path) -> "Tokenizer":
        """A tokenizer of Hugging Face with its ids: byte-level BPE or BERT's from `tokenizer.json`, or BERT's from
        `vocab.txt` (a file, or a directory that has it); or, from a directory without `tokenizer.json`, the tokenizer
        that was saved as `ParibusTokenizer` or lies with a checkpoint.

        Raises DataError for a broken file and ConfigurationError for a kind of tokenizer that cannot be the same here.
        """
        from paribus.tokenization.huggingface import from_huggingface, from_vocabulary_text

        path = Path(path)
        if path.name == "vocab.txt":
            return cls(*from_vocabulary_text(path))
        if not (path / "tokenizer.json").exists():
            if (path / "tokenizer").is_dir():
                return cls.load(path / "tokenizer")
            if (path / "vocab.txt").is_file():
                return cls(*from_vocabulary_text(path / "vocab.txt"))
        return cls(*from_huggingface(path))

    @classmethod
    def from_sentencepiece(cls, path: str | Path) -> "Tokenizer":
        """A BPE or Unigram model of SentencePiece (`.model`), with the ids of that library.

        Raises DataError for a broken file and ConfigurationError for a model that cannot be the same here.
        """
        from paribus.tokenization.sentencepiece import from_sentencepiece

        return cls(*from_sentencepiece(Path(path)))

    @classmethod
    def from_tiktoken(
        cls, source: str | Path | Mapping[bytes, int], *, pattern: str, special_tokens: Mapping[str, int] | None = None
    ) -> "Tokenizer":
        """A tiktoken vocabulary with its ids: a file of lines `base64 rank`, or `mergeable_ranks`.

        `pattern` is the regular expression it goes with, or the name of one of our pre-tokenizers. Raises DataError for
        a broken file or ids with holes, ConfigurationError for a pattern that none of our pre-tokenizers cuts like.
        """
        from paribus.tokenization.huggingface import from_tiktoken

        return cls(*from_tiktoken(source, pattern, special_tokens or {}))
