"""The verb `paribus tokens`: what tokenizers and encoders do with a corpus, without a model."""

import codecs
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.checks.command import compose_command
from paribus.commands.actions import print_usage, show, split_subject
from paribus.commands.tokens.files import TOKENS, report_directory, say_where
from paribus.config.arguments import Command, parse
from paribus.config.compose import Composition
from paribus.config.flags import HELP_FLAGS
from paribus.config.groups.experiment import TableConfig, table_of
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.make import check, make, note_made_of
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun, factor_labels
from paribus.reporting.tokenizers.tables import named

if TYPE_CHECKING:
    from paribus.pipeline.token_rows import Counted

USAGE = """usage: paribus tokens statistics [overrides]        -m tokenizer=... encoder=... for several
       paribus tokens containing TOKEN [overrides]  the tokens that contain it, and how often each occurs
       paribus tokens cut TEXT [overrides]          the tokens of a text; -m tokenizer=... encoder=... for several
       paribus tokens candidates [overrides]        mutual information and entropies of the candidates of spans
       paribus tokens entropy TEXT [overrides]      predictive entropy along a text, and where it is cut; a line alone

Statistics are of the training text, and bytes a token of the held-out text; with evaluation.tasks=[pku] or msr also how
well tokens agree with words. Candidates are of pretokenizer=spans; entropy is of pretokenizer=predictive_entropy, which
needs a model and no corpus. In TOKEN and TEXT, where they are ASCII, \\n and the like are as in Python; what begins
with a dash stands after --.
What is missing of corpus, vocabulary and tokens is made; no model is trained.

examples:
  paribus tokens statistics -m scale=demo tokenizer=bpe,scaffold_bpe
  paribus tokens containing zona scale=demo
  paribus tokens cut 'a longer word' -m scale=demo encoder=merge_rank,longest_first
"""
STATISTICS, CONTAINING, CUT = "statistics", "containing", "cut"
CANDIDATES, ENTROPY = "candidates", "entropy"
_MOST_SHOWN = 20


def tokens_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus tokens ACTION [TOKEN] [overrides]`; ConfigurationError for an action that is none."""
    if not arguments or arguments[0] in {*HELP_FLAGS, "help"}:
        print_usage(USAGE, console)
        return 0 if arguments else 2
    action, actions = arguments[0], (STATISTICS, CONTAINING, CUT, CANDIDATES, ENTROPY)
    if action not in actions:
        raise ConfigurationError(f"{action!r} is no action; known: {', '.join(actions)}\n{USAGE}")
    token, rest = (None, arguments[1:]) if action in {STATISTICS, CANDIDATES} else split_subject(arguments[1:])
    command = parse(rest, TOKENS)
    if command.shows:
        return show(command, USAGE, console)
    if action == STATISTICS:
        return _statistics(command, console)
    if action == CANDIDATES:
        from paribus.commands.tokens.candidates import show_candidates

        return show_candidates(_composed(action, command).jobs[0].config, console)
    return _of_text(action, token, command, console)


def _of_text(action: str, subject: str | None, command: Command, console: Console) -> int:
    if not subject:
        raise ConfigurationError(f"which {'token' if action == CONTAINING else 'text'}? Give its text\n{USAGE}")
    text = _unescaped(subject)
    if action == CUT:
        return _cut(text, command, console)
    if action == ENTROPY:
        from paribus.commands.tokens.entropy import show_entropy

        return show_entropy(text, _composed(action, command).jobs[0].config, console)
    return _containing(text, _composed(action, command), console)


def _composed(action: str, command: Command) -> Composition:
    composition = compose_command(command)
    refuse(action, composition)
    return composition


def refuse(action: str, composition: Composition) -> None:
    """ConfigurationError where an action has nothing to say of a composition, whatever files there are.

    That is where one that is about one configuration has several, and where no row would be the table's baseline.
    """
    from paribus.pipeline.token_rows import refuse_absent_baseline

    if action in (CONTAINING, CANDIDATES, ENTROPY) and len(composition.jobs) != 1:
        raise ConfigurationError(f"{len(composition.jobs)} configurations are too many: ask for one at a time")
    if action == STATISTICS:
        refuse_absent_baseline(composition.jobs, composition.factors, _table(composition))


def _unescaped(text: str) -> str:
    """Text with escapes as in Python, where it is ASCII; as it is where an escape is none."""
    try:
        return codecs.decode(text, "unicode_escape") if text.isascii() and "\\" in text else text
    except UnicodeDecodeError:
        return text


def _statistics(command: Command, console: Console) -> int:
    from paribus.pipeline.token_rows import TARGETS, count

    composition = _composed(STATISTICS, command)
    for job in composition.jobs:
        check(job.config, TARGETS)
    counted, failed = count(composition.jobs, TOKENS)
    if not counted:
        raise failed[0][1]
    warn = partial(console.print, style="yellow", markup=False, soft_wrap=True)
    made = len(composition.jobs) - len(failed)
    if len(counted) < made:
        warn(f"{made} configurations have {len(counted)} different tokens: those alike are one row")
    _report(composition, counted, console)
    for job, error in failed:
        warn(f"left out, {' '.join(job.overrides)}: {error}")
    return 1 if failed else 0


def _report(composition: Composition, counted: Sequence["Counted"], console: Console) -> None:
    from paribus.pipeline.token_rows import token_rows
    from paribus.reporting.paper import block
    from paribus.reporting.tokenizers.report import TITLE, write_token_report

    experiment = composition.jobs[0].config.experiment
    table = _table(composition)
    rows, overlap = token_rows(counted, composition.factors, table)
    # What is compared with what makes another report of the same artefacts.
    compared = [[*row.labels, row.baseline] for row in rows]
    keys = [one.key for one in counted]
    root = OutputRoot.of(composition.jobs[0].config)
    told = [experiment.name if experiment else None, list(composition.factors), compared, keys]
    directory = report_directory(root, told)
    note_made_of(directory, (artefact for one in counted for artefact in one.made.values()))
    tables = write_token_report(
        rows,
        directory,
        composition.factors,
        title=(experiment.title if experiment else None) or TITLE,
        paper=block.parse(experiment.paper) if experiment and experiment.paper else None,
        overlap=overlap,
        width=console.width,
    )
    for one in tables:
        console.print(one)
    say_where(directory, root, console)


def _table(composition: Composition) -> TableConfig:
    return table_of(composition.jobs[0].config.experiment)


def _cut(text: str, command: Command, console: Console) -> int:
    from paribus.commands.tokens.cut_text import cut_table

    composition = compose_command(command)
    for job in composition.jobs:
        check(job.config, ("vocabulary",))
    table, arms = _table(composition), []
    for job in composition.jobs:
        nodes = build_graph(job.config, OutputRoot.of(job.config).cache, targets=("vocabulary",))
        labels = factor_labels(PreparedRun(job, nodes), composition.factors).values()
        path = make(job.config, ("vocabulary",), asked_by=TOKENS)["vocabulary"].path / "tokenizer"
        arms.append((named(tuple(labels), table) or job.config.tokenizer.kind, path, job.config.encoder))
    console.print(cut_table(text, arms))
    return 0


def _containing(token: str, composition: Composition, console: Console) -> int:
    from paribus.pipeline.token_rows import TARGETS, count
    from paribus.tokenization.tokenizer import Tokenizer
    from paribus.tokenization.vocabulary.containment import containing

    check(composition.jobs[0].config, TARGETS)
    made, failed = count(composition.jobs, TOKENS)
    if failed:
        raise failed[0][1]
    (counted,) = made
    part = token.encode(errors="surrogatepass")
    found = containing(Tokenizer.load(counted.vocabulary), counted.counts(), part)
    say = partial(console.print, markup=False, soft_wrap=True)
    if not found:
        say(f"no token contains {token!r}")
        return 0
    say(f"{len(found):,} tokens contain {token!r}; occurrences in the training text:")
    for one in found[:_MOST_SHOWN]:
        shown = one.token.decode(errors="backslashreplace")
        say(f"  {100 * one.share:6.2f} %  {one.occurrences:>12,}  {shown!r}{'  (itself)' if one.token == part else ''}")
    if len(found) > _MOST_SHOWN:
        rest = found[_MOST_SHOWN:]
        say(f"  {100 * sum(one.share for one in rest):6.2f} %  in {len(rest):,} others")
    own = next((one for one in found if one.token == part), None)
    if own is None:
        say(f"{token!r} is no token of this vocabulary")
    elif own not in found[:_MOST_SHOWN]:
        say(f"{token!r} itself: {100 * own.share:.2f} %, {own.occurrences:,} times")
    return 0
