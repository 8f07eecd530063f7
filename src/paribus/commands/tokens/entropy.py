"""The predictive entropy of `pretokenizer=predictive_entropy` along lines of text, and where it cuts them."""

from functools import partial

from rich.console import Console

from paribus.commands.tokens.cut_text import BAR, shown
from paribus.commands.tokens.files import report_directory, say_where
from paribus.config.groups.tokenization import PredictiveEntropyPretokenizer
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.make import note_made_of
from paribus.pipeline.output_root import OutputRoot
from paribus.reporting.plots.entropy import EntropyLine, has_glyphs, pieces
from paribus.reporting.tokenizers.entropy import write_entropy_report


def show_entropy(text: str, config: RunConfig, console: Console) -> int:
    """Show where each line of `text` is cut, and write its entropies; nothing of the corpus is made.

    Raises:
        ConfigurationError: the pre-tokenizer has no language model, or the text no line or no UTF-8.
        DataError: there is no such model.
    """
    if not isinstance(config.pretokenizer, PredictiveEntropyPretokenizer):
        raise ConfigurationError(
            f"pretokenizer.kind: {config.pretokenizer.kind!r} has no language model; give "
            "pretokenizer=predictive_entropy pretokenizer.model=DIRECTORY"
        )
    lines = [line for line in _utf_8(text).splitlines() if line]
    if not lines:
        raise ConfigurationError("the text has no line with a character")
    from transformers.utils.logging import disable_progress_bar

    from paribus.tokenization.pretokenize.configured import predictive_entropy

    disable_progress_bar()
    cutter = predictive_entropy(config.pretokenizer)
    root = OutputRoot.of(config)
    directory = report_directory(root, ["entropy", cutter.digest, cutter.threshold, lines])
    found = [
        EntropyLine(line, entropies.tolist(), cutter.boundaries(entropies))
        for line, entropies in zip(lines, cutter.entropies(lines), strict=True)
    ]
    note_made_of(directory, ())
    write_entropy_report(found, directory)
    say = partial(console.print, markup=False, soft_wrap=True)
    for line in found:
        say(BAR.join(shown(piece.encode()) for piece in pieces(line)))
    if not has_glyphs("".join(lines)):
        say(
            "no font of this machine has all of these characters: see the SVG, which holds them as text", style="yellow"
        )
    say_where(directory, root, console)
    return 0


def _utf_8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"the text is no UTF-8 at character {error.start + 1}") from error
    return text
