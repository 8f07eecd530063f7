"""The predictive entropy of `pretokenizer=predictive_entropy` along lines of text, and where it cuts them."""

from functools import partial

from rich.console import Console

from paribus.commands.tokens.cut_text import BAR, shown
from paribus.commands.tokens.files import report_directory
from paribus.config.groups.tokenization import PredictiveEntropyPretokenizer
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import note_made_of
from paribus.reporting.data_reports import write_entropy_report
from paribus.reporting.figures_data import EntropyLine, pieces


def show_entropy(text: str, config: RunConfig, pretokenizer: PredictiveEntropyPretokenizer, console: Console) -> int:
    """Show where each line of `text` is cut, and write its entropies; nothing of the corpus is made.

    ConfigurationError where the text has no line; DataError where there is no such model.
    """
    lines = [line for line in text.splitlines() if line]
    if not lines:
        raise ConfigurationError("give --text TEXT, of which each line is cut by itself")
    from transformers.utils.logging import disable_progress_bar

    from paribus.tokenization.build import predictive_entropy

    disable_progress_bar()
    cutter = predictive_entropy(pretokenizer)
    directory = report_directory(OutputRoot.of(config), ["entropy", cutter.digest, cutter.threshold, lines])
    found = [
        EntropyLine(line, entropies.tolist(), cutter.boundaries(entropies))
        for line, entropies in zip(lines, cutter.entropies(lines), strict=True)
    ]
    note_made_of(directory, ())
    write_entropy_report(found, directory)
    say = partial(console.print, markup=False, soft_wrap=True)
    for line in found:
        say(BAR.join(shown(piece.encode()) for piece in pieces(line)))
    say(f"tables, numbers and plots: {directory}")
    return 0
