"""How tokenizers cut a text: a row a tokenizer with its encoder, tokens and pre-tokens between bars."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from paribus.config.groups.tokenization import EncoderConfig
from paribus.reporting.data_tables import bare_table
from paribus.tokenization.build import with_encoder
from paribus.tokenization.pretokenize import PATTERNS, Pretokenizer
from paribus.tokenization.tokenizer import Tokenizer

BAR = "|"


def cut_table(text: str, arms: Sequence[tuple[str, Path, EncoderConfig]]) -> Table:
    """Of each arm (name, directory of its vocabulary, encoder) the tokens of `text`, their number and the pre-tokens.

    A space is shown as `·`, bytes that are no whole character as escapes, line ends too. Pre-tokens are left out where
    every arm has none of its own, as with a tokenizer that was imported.
    """
    table = bare_table("How the text is cut")
    found = [(name, with_encoder(Tokenizer.load(path), encoder)) for name, path, encoder in arms]
    pieces = [pretokens(tokenizer, text) for _, tokenizer in found]
    for heading in ("", "tokens", "pre-tokens", "cut into"):
        if heading != "pre-tokens" or any(pieces):
            table.add_column(heading, justify="right" if heading.endswith("tokens") else "left", overflow="fold")
    for (name, tokenizer), parts in zip(found, pieces, strict=True):
        tokens = tokenizer.tokenize(text)
        counts = [str(len(tokens)), *([str(len(parts)) if parts else "–"] if any(pieces) else [])]
        table.add_row(name, *counts, Text(BAR.join(map(shown, tokens))))
        if parts:
            between = [""] * len(counts)
            table.add_row("", *between, Text(BAR.join(shown(part.encode()) for part in parts), style="dim"))
    return table


def pretokens(tokenizer: Tokenizer, text: str) -> list[str]:
    """The pieces that tokens do not cross; none where the tokenizer's own are not known."""
    if tokenizer.cutter is not None:
        return tokenizer.cutter.pieces(text)
    name = tokenizer.settings.pretokenizer
    return Pretokenizer(name).pieces(text) if name in PATTERNS else []


def shown(token: bytes) -> str:
    """A token as text, with a dot for a space and escapes for what is no character and for line ends."""
    text = token.decode(errors="backslashreplace")
    return text.translate({ord(" "): "·", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"})
