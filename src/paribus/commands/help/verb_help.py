"""`paribus VERB --help`: what a verb does, its flags, three examples and, of `run`, what there is to choose from.

Without Hydra, whose own help composes a configuration first: `--cfg job` shows that, `paribus explain` what a field
means.
"""

import textwrap
from collections.abc import Mapping

from paribus.config.arguments import OF_A_VERB
from paribus.config.explain import groups, options

WIDTH = 120
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
NAMED = ("status", "report")
"""Verbs that take a name in place of overrides."""
RUNS = "RUNS is a sweep or a run: its identifier or the beginning of one, the name of a sweep, or `last`."
COMMON: Mapping[str, str] = {
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
    own = OF_A_VERB.get(verb, {})
    flags = {**own, **COMMON}
    width = max(map(len, flags))
    taken = "RUNS | [-m] [overrides]" if verb in NAMED else "[-m] [overrides]"
    usage = f"usage: paribus {verb} {''.join(f'[{flag}] ' for flag in own)}{taken}"
    lines = [*textwrap.wrap(usage, WIDTH, subsequent_indent=" " * 7, break_on_hyphens=False), ""]
    lines += [*textwrap.wrap(ABOUT[verb], WIDTH), *([RUNS] if verb in NAMED else []), "", "flags:"]
    lines += [f"  {flag:<{width}}  {meaning}" for flag, meaning in flags.items()]
    lines += ["", "examples:", *(f"  {command}" for command in EXAMPLES[verb])]
    return "\n".join([*lines, *(["", _choices()] if verb == "run" else [])])


def _choices() -> str:
    """All groups with their options."""
    lines = ["groups, of which overrides choose (paribus explain GROUP, GROUP=OPTION or a field such as model.layers):"]
    for group in groups():
        names = ", ".join(option.name for option in options(group))
        lines += textwrap.wrap(f"  {group}: {names}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)
