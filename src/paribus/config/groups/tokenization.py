"""Groups `pretokenizer`, `tokenizer` and `encoder`."""

from typing import Any, Literal

from paribus.config.fields import (
    Device,
    NonNegativeReal,
    PathText,
    Positive,
    Probability,
    PruneShare,
    Seed,
    Strings,
    config_class,
    execution,
    identity,
)
from paribus.config.units import Count, Size

SPECIAL_DOC = "Special tokens; the first one ends a document. They are never matched inside text."

BYTES = 256
NATURAL = {"kind": "natural"}


@config_class
class PatternPretokenizer:
    """Pieces of text by a regular pattern."""

    kind: Literal["gpt2", "gpt2_digits", "gpt4", "whitespace", "punctuation", "stripped", "none"] = identity(
        "gpt2_digits",
        doc="gpt2_digits is the papers': GPT-2's with every digit a piece of its own. punctuation "
        "cuts before whitespace and punctuation alike. stripped drops whitespace and "
        "marks what continues a word (original BPE, WordPiece); none leaves the document whole.",
    )


@config_class
class SpansPretokenizer:
    """Spans of characters that belong together (arXiv 2506.15889): mutual information and branching entropy."""

    kind: Literal["spans"] = identity("spans", doc="Spans found in the corpus, for scripts without spaces.")
    max_length: Positive = identity(4, doc="Longest span, in characters; at least 2.")
    min_count: Positive = identity(2, doc="Occurrences a span needs.")
    entropy_weight: NonNegativeReal = identity(1.0, doc="Lambda, the weight of entropy beside the mutual information.")
    entropy_only: bool = identity(False, doc="Score by the entropy alone.")
    information: Literal["shares", "counts"] = identity(
        "shares",
        doc="Mutual information of shares of the text, or of counts, without their totals: lower by the same amount "
        "everywhere, and never positive.",
    )
    least_score: float | None = identity(
        None, doc="Score that a span must exceed; null takes the best one that begins at a place whatever it scores."
    )
    classes: Literal["one", "any"] = identity(
        "one", doc="Whether a span holds ideographs, letters or digits alone, or any characters, punctuation too."
    )


@config_class
class PredictiveEntropyPretokenizer:
    """Boundaries where a causal language model is least sure of the next character (arXiv 2506.15889)."""

    kind: Literal["predictive_entropy"] = identity("predictive_entropy", doc="Boundaries by a causal language model.")
    model: PathText = execution(
        doc="Directory of a causal language model whose tokens are characters; its files are the identity."
    )
    threshold: float | None = identity(None, doc="Smallest entropy of a boundary, in bits; null takes all maxima.")
    device: Device = execution(
        "auto",
        doc="Where the model computes while a vocabulary is trained and the corpus is encoded: auto (a GPU where there "
        "is one), cpu, cuda or cuda:N. Entropies agree to the noise of float32.",
    )


@config_class
class ExistingPretokenizer:
    """The pre-tokenizer of an existing tokenizer; it comes with `tokenizer=existing` and goes with nothing else."""

    kind: Literal["existing"] = identity("existing", doc="What the existing tokenizer brings.")


PretokenizerConfig = PatternPretokenizer | SpansPretokenizer | PredictiveEntropyPretokenizer | ExistingPretokenizer


@config_class
class TrainedTokenizer:
    """Fields of every tokenizer that is trained."""

    kind: str = identity(doc="Which one.")
    vocab_size: Count = identity(
        32_000, doc="Tokens of the final vocabulary, units and special tokens included (papers: 32K, 64K, 128K)."
    )
    unit: Literal["byte", "character"] = identity(
        "byte", doc="Smallest piece: UTF-8 bytes, or Unicode characters of the corpus."
    )
    unknown: Literal["byte_fallback", "token"] = identity(
        "byte_fallback",
        doc="With character units, a character outside the alphabet becomes its UTF-8 bytes or one unknown token.",
    )
    special_tokens: Strings = identity(("<|endoftext|>",), doc=SPECIAL_DOC)
    sample: Size | None = identity(
        None, doc="Train on the first documents up to this many bytes of text; null uses all of the training split."
    )
    lossless: bool = identity(
        True, doc="Refuse settings that lose text: pretokenizer=stripped, and unknown=token with character units."
    )


@config_class
class BPETokenizer(TrainedTokenizer):
    """Byte-pair encoding: merge the most frequent pair until the vocabulary is full."""

    kind: Literal["bpe"] = identity("bpe", doc="Byte-pair encoding.")


@config_class
class ScaffoldBPETokenizer(TrainedTokenizer):
    """Scaffold-BPE (arXiv 2404.17808): rare intermediate tokens leave the vocabulary and serve as scaffolds only."""

    kind: Literal["scaffold_bpe"] = identity("scaffold_bpe", doc="Scaffold-BPE, Algorithm 1.")
    demolish: Literal["parents", "shortest"] = identity(
        "parents", doc="Scaffolds become their parents (equation 6), or the fewest normal tokens."
    )


@config_class
class WordPieceTokenizer(TrainedTokenizer):
    """WordPiece by likelihood: merge the pair with the largest f(ij) / (f(i) f(j)) until the vocabulary is full."""

    kind: Literal["wordpiece"] = identity("wordpiece", doc="WordPiece, the likelihood objective.")


@config_class
class UnigramTokenizer(TrainedTokenizer):
    """Unigram language model (Kudo 2018), trained by sentencepiece on the counted pre-tokens."""

    kind: Literal["unigram"] = identity("unigram", doc="Unigram language model.")
    prune: PruneShare = identity(
        0.25,
        doc="Share of the tokens that a round of pruning removes, those that cost the least likelihood; 0.05 to 0.5.",
    )


@config_class
class WordsTokenizer(TrainedTokenizer):
    """A token a word: the commonest pre-tokens, with nothing learned inside them."""

    kind: Literal["words"] = identity(
        "words",
        doc="The commonest pre-tokens. Others are spelled in units; with unknown=token and character units they are "
        "one unknown token, and the vocabulary has no units.",
    )


@config_class
class BytesTokenizer:
    """One token a byte (ByT5), special tokens after."""

    kind: Literal["bytes"] = identity("bytes", doc="No training: 256 byte tokens and the special tokens.")
    special_tokens: Strings = identity(("<|endoftext|>",), doc=SPECIAL_DOC)


@config_class
class ExistingTokenizer:
    """A tokenizer that is there already, with its pre-tokenizer and its ids; the encoder is that of the run."""

    kind: Literal["existing"] = identity(
        "existing", doc="No training: a tokenizer of ours, of Hugging Face or of SentencePiece."
    )
    path: PathText = execution(
        doc="Directory of a tokenizer, a run or a checkpoint, or a tokenizer.json, *.model or vocab.txt; its files are "
        "the identity."
    )
    lossless: bool = identity(True, doc="Refuse a tokenizer that loses whitespace or characters, or normalizes text.")


TrainableTokenizerConfig = (
    BPETokenizer | ScaffoldBPETokenizer | WordPieceTokenizer | UnigramTokenizer | WordsTokenizer | BytesTokenizer
)
TokenizerConfig = TrainableTokenizerConfig | ExistingTokenizer


def vocabulary_size(tokenizer: TrainableTokenizerConfig) -> int:
    """Number of token ids that a tokenizer is asked to have, special tokens included."""
    if isinstance(tokenizer, BytesTokenizer):
        return BYTES + len(tokenizer.special_tokens)
    return tokenizer.vocab_size


def natural_encoder(tokenizer: str) -> Any:
    """Kind of the encoder that a kind of tokenizer is made for."""
    return {"wordpiece": "left_to_right", "unigram": "viterbi", "words": "whole"}.get(tokenizer, "merge_rank")


@config_class
class MergeRankEncoder:
    """Apply the earliest-learned applicable merge, leftmost first (standard BPE encoding)."""

    kind: Literal["merge_rank"] = identity("merge_rank", doc="Standard BPE encoding.")


@config_class
class LongestFirstEncoder:
    """LBPE, Algorithm 1: the longest token first, anywhere in the pre-token, leftmost at equal length."""

    kind: Literal["longest_first"] = identity("longest_first", doc="Longest token first (LBPE).")
    candidates: Literal["normal", "expanded"] = identity(
        "normal", doc="With Scaffold-BPE: match normal tokens only, or scaffolds too and demolish them afterwards."
    )


@config_class
class LeftToRightEncoder:
    """The longest token from the left, again and again (WordPiece)."""

    kind: Literal["left_to_right"] = identity("left_to_right", doc="Longest match from the left (WordPiece).")


@config_class
class ViterbiEncoder:
    """The tokens of largest summed log-probability (Unigram)."""

    kind: Literal["viterbi"] = identity("viterbi", doc="Most probable tokens; needs tokenizer=unigram.")


@config_class
class FewestEncoder:
    """The fewest tokens, by dynamic programming."""

    kind: Literal["fewest"] = identity("fewest", doc="Fewest tokens of any vocabulary.")


@config_class
class WholeEncoder:
    """The pre-token as one token (words)."""

    kind: Literal["whole"] = identity(
        "whole", doc="A pre-token that is a token, else one unknown token, or its units where nothing is lost."
    )


@config_class
class DropoutEncoder:
    """BPE-dropout (Provilkov et al. 2020): merge rank, with merges skipped at random."""

    kind: Literal["dropout"] = identity("dropout", doc="BPE-dropout.")
    probability: Probability = identity(0.1, doc="Probability that a merge is skipped at a step (paper: 0.1).")
    seed: Seed = identity(
        0, doc="Of the random numbers, with the text itself and the draw: in one, equal texts have equal tokens."
    )
    draws: Positive = identity(
        1,
        doc="How often the text is encoded, each time with other random numbers: epochs read the draws in turn "
        "(paper: every epoch another). Above 1 for packing=pair.",
    )


EncoderConfig = (
    MergeRankEncoder | LongestFirstEncoder | LeftToRightEncoder | ViterbiEncoder
    | FewestEncoder | WholeEncoder | DropoutEncoder
)  # fmt: skip


def draws_of(encoder: EncoderConfig) -> int:
    """How often an encoder encodes the text."""
    return encoder.draws if isinstance(encoder, DropoutEncoder) else 1
