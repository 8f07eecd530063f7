"""The action `paribus tokens encode`: standard input in the tokens of one tokenizer, or a text in those of several.

`paribus tokens encode TOKENIZER [encoder=...] [output=...] < text` has no configuration, and starts without Hydra.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from paribus.config.arguments import HELP_FLAGS, read_options
from paribus.config.groups.tokenization import EncoderConfig
from paribus.errors import ConfigurationError, DataError
from paribus.native.loader import ensure_compiled, missing_kernels
from paribus.native.registry import ENCODING
from paribus.tokenization.existing import open_existing
from paribus.tokenization.pretokenize import PATTERNS, PatternPretokenizer
from paribus.tokenization.settings import Candidates, EncoderName, check_choice
from paribus.tokenization.statistics import corpus_statistics
from paribus.tokenization.text_tokenizer import DROPOUT
from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary import Demolish

if TYPE_CHECKING:
    from rich.table import Table

Number = TypeVar("Number", int, float)

OUTPUTS = ("ids", "tokens", "statistics")
OPTIONS = ("encoder", "output", "candidates", "demolish", "probability", "seed")
USAGE = (
    f"usage: paribus tokens encode TOKENIZER [encoder={'|'.join(get_args(EncoderName))}] "
    f"[output={'|'.join(OUTPUTS)}] [candidates={'|'.join(get_args(Candidates))}] "
    f"[demolish={'|'.join(get_args(Demolish))}] [probability=0.1] [seed=0] < text\n"
    "       paribus tokens encode --text TEXT [-m] [overrides]    TEXT in the tokens of each configuration"
)
HELP = f"""{USAGE}

Encode standard input, UTF-8, with a trained tokenizer. TOKENIZER is a directory that `Tokenizer.save` wrote, a
vocabulary of a run (paribus_runs/artifacts/vocabulary/KEY), a tokenizer.json of Hugging Face, a *.model of
SentencePiece or a vocab.txt of BERT, or the directory of one. Options that are not given are the tokenizer's own.

output: ids on one line; tokens, one a line, as JSON strings or \\xNN bytes; statistics as JSON

examples:
  echo some text | paribus tokens encode paribus_runs/artifacts/vocabulary/KEY
  echo some text | paribus tokens encode my/tokenizer.json output=tokens
  paribus tokens encode my/tokenizer.json encoder=longest_first output=statistics < text
"""


def encode_command(arguments: Sequence[str]) -> int:
    """Encode standard input; ConfigurationError for wrong arguments, DataError for a broken tokenizer or no UTF-8."""
    if HELP_FLAGS & set(arguments):
        sys.stdout.write(HELP)
        return 0
    if not arguments or "=" in arguments[0]:
        raise ConfigurationError(f"name the directory or file of a tokenizer, or give --text TEXT\n{USAGE}")
    options = read_options(arguments[1:], OPTIONS)
    output = options.pop("output", "ids")
    check_choice("output", output, OUTPUTS)
    _compile_kernels()
    tokenizer = _tokenizer(Path(arguments[0]), options)
    text = _read_input()
    if output == "ids":
        sys.stdout.write(" ".join(map(str, tokenizer.encode(text).tolist())) + "\n")
    elif output == "tokens":
        sys.stdout.writelines(_escaped(token) + "\n" for token in tokenizer.tokenize(text))
    else:
        sys.stdout.write(corpus_statistics(tokenizer, [text]).as_json() + "\n")
    return 0


def _compile_kernels() -> None:
    if not missing_kernels(ENCODING):
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling kernels (once)")
        ensure_compiled(ENCODING, lambda name, done, total: bar.update(task, completed=done, total=total))
        bar.update(task, completed=1, total=1)


def _tokenizer(path: Path, options: dict[str, str]) -> Tokenizer:
    tokenizer = open_existing(path)
    if not options:
        return tokenizer
    choices: dict[str, Any] = {}
    for name, known in (("encoder", EncoderName), ("candidates", Candidates), ("demolish", Demolish)):
        choices[name] = options.get(name, getattr(tokenizer.settings, name))
        check_choice(name, choices[name], get_args(known))
    return tokenizer.with_encoder(
        **choices,
        dropout=_number("probability", options.get("probability", DROPOUT), float),
        seed=_number("seed", options.get("seed", 0), int),
    )


def _number(name: str, value: Any, kind: type[Number]) -> Number:
    try:
        return kind(value)
    except ValueError as error:
        raise ConfigurationError(f"{name}={value} is no number") from error


def _read_input() -> str:
    content = sys.stdin.buffer.read()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"standard input, line {line}: byte {error.start} is no UTF-8 ({error.reason})") from error


def _escaped(token: bytes) -> str:
    try:
        return json.dumps(token.decode("utf-8"), ensure_ascii=False)
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" for byte in token)


BAR = "|"


def cut_table(text: str, arms: Sequence[tuple[str, Path, EncoderConfig]]) -> "Table":
    """Tokens of `text` by each arm (name, directory of its vocabulary, encoder), their number and the pre-tokens.

    A space is shown as `·`, bytes that are no whole character as escapes, line ends too. Pre-tokens are left out where
    every arm has none of its own, as with a tokenizer that was imported.
    """
    from rich.text import Text

    from paribus.reporting.data_tables import bare_table
    from paribus.tokenization.build import with_encoder

    table = bare_table("How the text is cut")
    tokenizers = [(name, with_encoder(Tokenizer.load(path), encoder)) for name, path, encoder in arms]
    pieces = [pretokens(tokenizer, text) for _, tokenizer in tokenizers]
    for heading in ("", "tokens", "pre-tokens", "cut into"):
        if heading != "pre-tokens" or any(pieces):
            table.add_column(heading, justify="right" if heading.endswith("tokens") else "left", overflow="fold")
    for (name, tokenizer), parts in zip(tokenizers, pieces, strict=True):
        tokens = tokenizer.tokenize(text)
        counts = [str(len(tokens)), *([str(len(parts)) if parts else "–"] if any(pieces) else [])]
        table.add_row(name, *counts, Text(BAR.join(map(token_text, tokens))))
        if parts:
            between = [""] * len(counts)
            table.add_row("", *between, Text(BAR.join(token_text(part.encode()) for part in parts), style="dim"))
    return table


def pretokens(tokenizer: Tokenizer, text: str) -> list[str]:
    """The pieces that tokens do not cross; none where the tokenizer's own are not known."""
    if tokenizer.cutter is not None:
        return tokenizer.cutter.pieces(text)
    name = tokenizer.settings.pretokenizer
    return PatternPretokenizer(name).pieces(text) if name in PATTERNS else []


def token_text(token: bytes) -> str:
    """A token as text, with a dot for a space and escapes for what is no character and for line ends."""
    text = token.decode(errors="backslashreplace")
    return text.translate({ord(" "): "·", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"})
