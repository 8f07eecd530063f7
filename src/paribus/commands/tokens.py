"""The verb `paribus tokens`: what tokenizers and encoders do with a corpus, without a model."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from paribus.checks import compose_command
from paribus.config.arguments import HELP, HELP_FLAGS, Command, parse
from paribus.config.compose import Composition
from paribus.config.groups.evaluation import TableConfig, table_of
from paribus.config.groups.tokenization import PredictiveEntropyPretokenizer, SpansPretokenizer
from paribus.config.hydra_session import show_with_hydra
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepared import PreparedRun, factor_labels
from paribus.pipeline.root import TOKENS, OutputRoot
from paribus.pipeline.run import check, make, note_made_of
from paribus.reporting.data_tables import joined_labels

if TYPE_CHECKING:
    from paribus.commands.token_rows import Counted


USAGE = """usage: paribus tokens statistics [-m] [overrides]     compression, lengths, entropy, overlap
       paribus tokens statistics --containing TEXT [overrides]    the tokens that contain it, and how often each occurs
       paribus tokens encode TOKENIZER < text         ids, tokens or statistics of standard input
       paribus tokens encode --text TEXT [-m] [overrides]    a text in the tokens of each configuration
       paribus tokens entropy pretokenizer=spans [overrides]    mutual information and entropies of its candidates
       paribus tokens entropy pretokenizer=predictive_entropy pretokenizer.model=DIR --text TEXT    entropy along
                                                      each line of a text, and where it is cut; needs no corpus

Statistics are of the training text, and bytes a token of the held-out text; with evaluation.tasks=[pku] or [msr] also
how well tokens agree with words. Missing corpora, vocabularies and tokens are made; no model is trained.

examples:
  paribus tokens statistics -m scale=demo tokenizer=bpe,scaffold_bpe
  paribus tokens statistics --containing zona scale=demo
  paribus tokens encode --text 'a longer word' -m scale=demo encoder=merge_rank,longest_first
"""
STATISTICS, ENCODE, ENTROPY = "statistics", "encode", "entropy"
TEXT, CONTAINING = "--text", "--containing"
FLAG_OF_ACTION = {STATISTICS: CONTAINING, ENCODE: TEXT, ENTROPY: TEXT}
_MOST_SHOWN = 20


def tokens_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus tokens ACTION [FLAG TEXT] [overrides]`; ConfigurationError for an action that is none."""
    if not arguments or arguments[0] in {*HELP_FLAGS, "help"}:
        console.print(USAGE, markup=False, end="", soft_wrap=True)
        return 0 if arguments else 2
    action = arguments[0]
    if action not in FLAG_OF_ACTION:
        raise ConfigurationError(f"unknown action {action!r}; known: {', '.join(FLAG_OF_ACTION)}\n{USAGE}")
    text, rest = _split_flag(arguments[1:], FLAG_OF_ACTION[action])
    command = parse(rest, TOKENS)
    if command.has(HELP):
        console.print(USAGE, markup=False, end="", soft_wrap=True)
    elif command.shows:
        show_with_hydra(command)
    elif action == ENCODE:
        return _show_encoded(text or "", command, console)
    elif action == ENTROPY:
        return _show_entropy(text, _single_composition(command), console)
    elif text is not None:
        return _show_containing(text, _single_composition(command), console)
    else:
        return _show_statistics(command, console)
    return 0


def _split_flag(arguments: Sequence[str], flag: str) -> tuple[str | None, list[str]]:
    """The text after `flag`, None without the flag, and the other arguments."""
    split = [part for given in arguments for part in (given.split("=", 1) if given.startswith(f"{flag}=") else [given])]
    if flag not in split:
        return None, split
    at = split.index(flag)
    if at + 1 == len(split) or not split[at + 1]:
        raise ConfigurationError(f"{flag} needs a text after it\n{USAGE}")
    return split[at + 1], [*split[:at], *split[at + 2 :]]


def _single_composition(command: Command) -> Composition:
    composition = compose_command(command)
    if len(composition.jobs) != 1:
        raise ConfigurationError(f"{CONTAINING} and {ENTROPY} take one configuration, not {len(composition.jobs)}")
    return composition


def _show_entropy(text: str | None, composition: Composition, console: Console) -> int:
    config = composition.jobs[0].config
    if isinstance(config.pretokenizer, SpansPretokenizer):
        from paribus.commands.tokens_entropy import show_candidates

        if text is not None:
            raise ConfigurationError(f"{TEXT} is for pretokenizer=predictive_entropy; pretokenizer=spans has a corpus")
        return show_candidates(config, config.pretokenizer, console)
    if isinstance(config.pretokenizer, PredictiveEntropyPretokenizer):
        from paribus.commands.tokens_entropy import show_entropy

        return show_entropy(text or "", config, config.pretokenizer, console)
    raise ConfigurationError(
        f"pretokenizer.kind: {config.pretokenizer.kind!r} uses no entropy; give pretokenizer=spans, or "
        "pretokenizer=predictive_entropy pretokenizer.model=DIRECTORY"
    )


def _show_statistics(command: Command, console: Console) -> int:
    from paribus.commands.token_rows import TARGETS, count_tokens, refuse_absent_baseline

    composition = compose_command(command)
    refuse_absent_baseline(composition.jobs, composition.factors, _table_config(composition))
    for job in composition.jobs:
        check(job.config, TARGETS)
    counted, failed = count_tokens(composition.jobs, TOKENS)
    if not counted:
        raise failed[0][1]
    warn = partial(console.print, style="yellow", markup=False, soft_wrap=True)
    made = len(composition.jobs) - len(failed)
    if len(counted) < made:
        warn(f"{made} configurations have {len(counted)} different tokens: those alike are one row")
    _write_report(composition, counted, console)
    for job, error in failed:
        warn(f"left out, {' '.join(job.overrides)}: {error}")
    return 1 if failed else 0


def _write_report(composition: Composition, counted: Sequence["Counted"], console: Console) -> None:
    from paribus.commands.token_rows import token_rows
    from paribus.reporting.data_reports import TOKENIZERS_TITLE, write_token_report
    from paribus.reporting.paper import parse_paper

    experiment = composition.jobs[0].config.experiment
    rows, overlap = token_rows(counted, composition.factors, _table_config(composition))
    # What is compared with what makes another report of the same artefacts.
    compared = [[*row.labels, row.baseline] for row in rows]
    keys = [tokens.statistics.key for tokens in counted]
    subject = [experiment.name if experiment else None, list(composition.factors), compared, keys]
    directory = OutputRoot.of(composition.jobs[0].config).data_report(TOKENS, subject)
    note_made_of(directory, (artefact for tokens in counted for artefact in tokens.made.values()))
    tables = write_token_report(
        rows,
        directory,
        composition.factors,
        title=(experiment.title if experiment else None) or TOKENIZERS_TITLE,
        paper=parse_paper(experiment.paper) if experiment and experiment.paper else None,
        overlap=overlap,
        width=console.width,
    )
    for each in tables:
        console.print(each)
    console.print(f"tables, numbers and plots: {directory}", markup=False, soft_wrap=True)


def _table_config(composition: Composition) -> TableConfig:
    return table_of(composition.jobs[0].config.experiment)


def _show_encoded(text: str, command: Command, console: Console) -> int:
    from paribus.commands.tokens_encode import cut_table

    composition = compose_command(command)
    for job in composition.jobs:
        check(job.config, ("vocabulary",))
    table, arms = _table_config(composition), []
    for job in composition.jobs:
        nodes = build_graph(job.config, OutputRoot.of(job.config).cache, targets=("vocabulary",))
        labels = factor_labels(PreparedRun(job, nodes), composition.factors).values()
        path = make(job.config, ("vocabulary",), asked_by=TOKENS)["vocabulary"].path / "tokenizer"
        arms.append((joined_labels(tuple(labels), table) or job.config.tokenizer.kind, path, job.config.encoder))
    console.print(cut_table(text, arms))
    return 0


def _show_containing(token: str, composition: Composition, console: Console) -> int:
    from paribus.commands.token_rows import TARGETS, count_tokens
    from paribus.tokenization.statistics import containing

    check(composition.jobs[0].config, TARGETS)
    made, failed = count_tokens(composition.jobs, TOKENS)
    if failed:
        raise failed[0][1]
    (counted,) = made
    part = token.encode(errors="surrogatepass")
    matches = containing(counted.tokenizer(), counted.counts(), part)
    say = partial(console.print, markup=False, soft_wrap=True)
    if not matches:
        say(f"no token contains {token!r}")
        return 0
    say(f"{len(matches):,} tokens contain {token!r}; occurrences in the training text:")
    for each in matches[:_MOST_SHOWN]:
        text = repr(each.token.decode(errors="backslashreplace"))
        say(f"  {100 * each.share:6.2f} %  {each.occurrences:>12,}  {text}{'  (itself)' if each.token == part else ''}")
    if rest := matches[_MOST_SHOWN:]:
        say(f"  {100 * sum(each.share for each in rest):6.2f} %  in {len(rest):,} others")
    own = next((each for each in matches if each.token == part), None)
    if own is None:
        say(f"{token!r} is no token of this vocabulary")
    elif own in rest:
        say(f"{token!r} itself: {100 * own.share:.2f} %, {own.occurrences:,} times")
    return 0
