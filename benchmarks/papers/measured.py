"""BPE, LBPE and Scaffold-BPE of one size on the text they were trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.reporting.data_tables import counts_by_length
from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import Algorithm, EncoderName
from paribus.tokenization.statistics import (
    CorpusStatistics,
    TokenGroup,
    character_lengths,
    count_statistics,
    count_tokens,
    length_buckets,
    only_in,
    spellings,
)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A text in the tokens of one tokenizer."""

    tokenizer: Tokenizer
    counts: npt.NDArray[np.int64]
    """Occurrences by id, shape (vocab_size,)."""
    statistics: CorpusStatistics

    @classmethod
    def of(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> "Encoded":
        """Encode and count."""
        counted = count_tokens(tokenizer, texts)
        return cls(tokenizer, counted.ids, count_statistics(tokenizer, counted))

    def occurrences(self) -> list[int]:
        """Tokens in the text by `LENGTHS`."""
        return counts_by_length(self.statistics.token_lengths)

    def vocabulary(self) -> list[int]:
        """Tokens in the vocabulary by `LENGTHS`."""
        columns, ranks = self.tokenizer.vocabulary.columns, self.tokenizer.vocabulary.rank_of_id.tolist()
        lengths = character_lengths([columns.spellings[rank] for rank in ranks])
        return counts_by_length(length_buckets(lengths, np.ones_like(lengths)))


@dataclass(frozen=True, eq=False)
class Measured:
    """The same text under every method, at one vocabulary size."""

    bpe: Encoded
    lbpe: Encoded
    """The vocabulary of BPE, encoded longest-first."""
    scaffold: Encoded
    both: Encoded
    """The vocabulary of Scaffold-BPE, scaffolds out, encoded longest-first."""

    @classmethod
    def of(cls, texts: Sequence[str], size: int) -> "Measured":
        """Train and encode as the papers do: characters, GPT-2's pre-tokens with single digits."""
        algorithms: tuple[Algorithm, ...] = ("bpe", "scaffold_bpe")
        encoders: tuple[EncoderName, ...] = ("merge_rank", "longest_first")
        tokenizers = [
            Tokenizer.train(texts, algorithm=algorithm, vocab_size=size, unit="character", pretokenizer="gpt2_digits")
            for algorithm in algorithms
        ]
        return cls(*(Encoded.of(tok.with_encoder(name), texts) for tok in tokenizers for name in encoders))

    @property
    def size(self) -> int:
        """Tokens that BPE's vocabulary has; fewer than asked for where no pair was left."""
        return self.bpe.tokenizer.vocab_size

    def replaced(self) -> TokenGroup:
        """The tokens of BPE that are scaffolds in Scaffold-BPE, in the text that BPE encoded."""
        return only_in(spellings(self.bpe.tokenizer), spellings(self.scaffold.tokenizer), self.bpe.counts)

    def replacing(self) -> TokenGroup:
        """The tokens that Scaffold-BPE has for them, in the text that Scaffold-BPE encoded."""
        return only_in(spellings(self.scaffold.tokenizer), spellings(self.bpe.tokenizer), self.scaffold.counts)


def change(after: float, before: float) -> float:
    """Relative change; NaN from nothing."""
    return after / before - 1 if before else float("nan")
