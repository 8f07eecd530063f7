"""Functions of the verbs, by name, and the help of those that take Hydra's overrides.

That help, `paribus VERB --help`, is without Hydra, whose own composes a configuration first: `--cfg job` shows that,
`paribus explain` what a field means.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.console import Console

from paribus.commands import RUNS
from paribus.config.arguments import HELP, HELP_FLAGS, VERB_FLAGS, Command, groups, options, parse
from paribus.pipeline.display import open_console, print_json

HELP_WIDTH = 120
ABOUT: Mapping[str, str] = {
    "run": "Make what a configuration lacks: tokenizer, tokens, order, training, scores, each once for all runs that "
    "share it. After a sweep comes its table. Given again, it carries on where it stopped.",
    "plan": "Say what `paribus run` with the same overrides would make and what that takes; make nothing. "
    "Where that could not begin here, for want of a file say, or would refuse, the last lines say why, and the exit "
    "status is 1.",
    "status": "Show the state of a sweep's runs and why some failed; the exit status is 1 unless all are done. Without "
    "arguments but root=...: all sweeps and runs of the output root, the newest first.",
    "report": "Build the table of a sweep with its error bars, tests and proof of fairness, in the terminal and as "
    "Markdown, CSV, LaTeX and HTML; without arguments, of the last sweep. For tables without a model use "
    "`paribus tokens statistics` and `paribus orders`.",
    "orders": "Make the orders of a corpus and show, without a model, how alike the documents of a context are and how "
    "many it holds.",
}
"""Verbs that take overrides, in a sentence or two."""
TAKES_RUNS = ("status", "report")
"""Verbs that take a name in place of overrides."""
COMMON_FLAGS: Mapping[str, str] = {
    "-m": "run every combination of comma-separated values: -m seed=0,1,2 encoder=merge_rank,longest_first",
    "--cfg job": "print the composed configuration and exit",
    "--config-dir DIR": "groups and experiments of your own, beside those of paribus",
}
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "run": (
        "paribus run experiment=demo",
        "paribus run scale=demo tokenizer=scaffold_bpe encoder=longest_first budget.tokens=1M",
        "paribus run -m tokenizer=bpe,scaffold_bpe seed=0,1,2 corpus=files 'corpus.paths=[my/*.jsonl.zst]'",
    ),
    "plan": (
        "paribus plan experiment=demo",
        "paribus plan experiment=lbpe/table_1 scale=paper plan=h800_128",
        "paribus plan experiment=demo until=tokens",
    ),
    "status": ("paribus status", "paribus status experiment=demo", "paribus status last --json"),
    "report": ("paribus report", "paribus report experiment=demo --why", "paribus report last --json"),
    "orders": (
        "paribus orders -m experiment=demo ordering=standard,in_context",
        "paribus orders -m scale=demo ordering=standard,in_context,lexical",
        "paribus orders -m scale=demo ordering=in_context duplicates=off,minhash",
    ),
}
"""Verb -> commands that somebody may give as they are, or with a name of their own in place."""


def verb_help(verb: str) -> str:
    """The help of a verb that takes overrides."""
    own = VERB_FLAGS.get(verb, {})
    flags = {**own, **COMMON_FLAGS}
    width = max(map(len, flags))
    taken = "RUNS | [-m] [overrides]" if verb in TAKES_RUNS else "[-m] [overrides]"
    usage = f"usage: paribus {verb} {''.join(f'[{flag}] ' for flag in own)}{taken}"
    lines = [*textwrap.wrap(usage, HELP_WIDTH, subsequent_indent=" " * 7, break_on_hyphens=False), ""]
    lines += [*textwrap.wrap(ABOUT[verb], HELP_WIDTH), *([RUNS] if verb in TAKES_RUNS else []), "", "flags:"]
    lines += [f"  {flag:<{width}}  {meaning}" for flag, meaning in flags.items()]
    lines += ["", "examples:", *(f"  {command}" for command in EXAMPLES[verb])]
    if verb == "run":
        example = "paribus explain GROUP, GROUP=OPTION or a field such as model.layers"
        lines += ["", f"groups, of which overrides choose ({example}):"]
        for group in groups():
            names = ", ".join(option.name for option in options(group))
            lines += textwrap.wrap(f"  {group}: {names}", HELP_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)


EXIT_REFUSED_BY_RUN = 1
"""Exit status of a complete plan that `paribus run` could not begin or would refuse, for scripts that go on with it."""


def _with_overrides(name: str) -> Callable[[Sequence[str]], int]:
    """A verb that lets Hydra answer --cfg and the like, and otherwise runs its function."""

    def verb(arguments: Sequence[str]) -> int:
        command = parse(arguments, name)
        if command.has(HELP):
            open_console().print(verb_help(name), markup=False, highlight=False, soft_wrap=True)
            return 0
        if command.shows:
            from paribus.config.hydra_session import show_with_hydra

            show_with_hydra(command)
            return 0
        # With --json standard output is for the document alone.
        return _function_of(name)(command, open_console(stderr=command.has("--json")))

    return verb


def _function_of(verb: str) -> Callable[[Command, Console], int]:
    if verb == "run":
        from paribus.commands.run import run_command as function
    elif verb == "status":
        from paribus.commands.status import status_command as function
    elif verb == "report":
        from paribus.commands.report import report_command as function
    elif verb == "orders":
        from paribus.commands.orders import orders_command as function
    else:
        return _plan
    return function


def _without_overrides(name: str) -> Callable[[Sequence[str]], int]:
    """A verb that prints the help of its file, where that is asked for, and otherwise runs its function."""

    def verb(arguments: Sequence[str]) -> int:
        if name == "export":
            from paribus.commands.export import HELP
            from paribus.commands.export import export_command as function
        elif name == "clean":
            from paribus.commands.clean import HELP
            from paribus.commands.clean import clean_command as function
        elif name == "rerun":
            from paribus.commands.rerun import HELP
            from paribus.commands.rerun import rerun_command as function
        else:
            from paribus.commands.explain import HELP
            from paribus.commands.explain import explain_command as function
        if HELP_FLAGS & set(arguments):
            open_console().print(HELP, end="", markup=False, highlight=False, soft_wrap=True)
            return 0
        return function(arguments, open_console())

    return verb


def _plan(command: Command, console: Console) -> int:
    from paribus.checks import compose_command
    from paribus.pipeline.prepare import prepare_runs
    from paribus.pipeline.root import OutputRoot
    from paribus.planning.plan import make_plan
    from paribus.planning.show import check_limit, plan_document, show_plan
    from paribus.tracking.destination import Destination

    say = partial(console.print, markup=False, soft_wrap=True)
    runs = prepare_runs(compose_command(command), tolerate_missing=True)
    plan = make_plan(runs, say)
    if command.has("--json"):
        print_json(plan_document(plan, runs))
    else:
        show_plan(plan, console)
        if (config := runs[0].job.config).tracking.kind == "mlflow":
            say(f"shown in {Destination.resolve(config.tracking, OutputRoot.of(config).path).named}")
    check_limit(plan)
    return 0 if plan.would_begin else EXIT_REFUSED_BY_RUN


def _sync(arguments: Sequence[str]) -> int:
    from paribus.tracking.sync import main

    return main(arguments)


def _tokens(arguments: Sequence[str]) -> int:
    from paribus.commands.tokens import tokens_command

    return tokens_command(arguments, open_console())


FUNCTIONS: dict[str, Callable[[Sequence[str]], int]] = {
    **{name: _with_overrides(name) for name in ("run", "plan", "status", "report", "orders")},
    **{name: _without_overrides(name) for name in ("export", "clean", "rerun", "explain")},
    "tokens": _tokens,
    "sync": _sync,
}
