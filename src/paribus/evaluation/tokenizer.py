"""The tokenizer that scoring uses."""

from pathlib import Path

from paribus.tokenization import Tokenizer


def evaluation_tokenizer(directory: Path) -> Tokenizer:
    """A run's tokenizer; in place of BPE-dropout all merges, as its authors score models.

    Dropout would cut a context otherwise for each of its choices (Provilkov et al. 2020, section 3).
    """
    tokenizer = Tokenizer.load(directory)
    return tokenizer.with_encoder("merge_rank") if tokenizer.settings.encoder == "dropout" else tokenizer
