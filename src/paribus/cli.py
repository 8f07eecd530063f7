"""The verbs of the command line. Nothing heavy is imported before a verb is chosen."""

import os
import signal
import sys
from collections.abc import Callable, Sequence

from paribus.commands import VERBS
from paribus.pipeline.streams import guard_streams

USAGE = """paribus: compare tokenizers, encodings and document orders, all else being equal

usage: paribus VERB [overrides]

{verbs}

Overrides are Hydra's: tokenizer=scaffold_bpe budget.tokens=1B -m encoder=merge_rank,longest_first
  paribus VERB --help        what a verb does, its flags and examples
  paribus explain tokenizer  what there is to choose from, and what it means
  paribus run --cfg job      the composed configuration
  paribus run experiment=demo
"""

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; its exit status, or 1 if its output could not be written. A closed pipe is no error."""
    lost = guard_streams()
    status = _main(list(sys.argv[1:] if arguments is None else arguments))
    print(end="", flush=True)
    if lost:
        print(f"paribus: what was printed could not be written: {lost[0].strerror}", file=sys.stderr)
        return status or 1
    return status


def _main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if arguments else EXIT_USAGE
    if arguments[0] == "--version":
        from paribus import __version__

        print(f"paribus {__version__}")
        return 0
    if arguments[0] not in VERBS:
        from difflib import get_close_matches

        close = get_close_matches(arguments[0], VERBS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        print(f"paribus: {arguments[0]!r} is not a verb; {hint}verbs: {', '.join(VERBS)}", file=sys.stderr)
        return EXIT_USAGE
    verb, given = arguments[0], arguments[1:]
    if topics := [argument.removeprefix("--help=") for argument in given if argument.startswith("--help=")]:
        verb, given = "explain", topics
    return _guarded(verb, given)


def usage() -> str:
    """The help text."""
    lines = [f"  {name:<10} {text}" for name, text in VERBS.items()]
    return USAGE.format(verbs="\n".join(lines))


def _guarded(verb: str, arguments: list[str]) -> int:
    from paribus.engine.processes import interrupt, on_stop
    from paribus.errors import ParibusError, classify

    # Otherwise processes started with -m or -c would import a `numbers.py` of the working directory.
    os.environ["PYTHONSAFEPATH"] = "1"
    on_stop(interrupt)
    # A scheduler may ask any time for a checkpoint, which only a training takes (`pipeline/execute.py`).
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        return _verb(verb, arguments)(arguments)
    except ParibusError as error:
        print(f"paribus {verb}: {error}", file=sys.stderr)
        return EXIT_USAGE if error.failure_class == "configuration" else 1
    except KeyboardInterrupt:
        print(f"paribus {verb}: stopped; give the same command again to carry on", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OSError as error:
        print(f"paribus {verb}: {classify(error)['message']}", file=sys.stderr)
        return 1


def _verb(verb: str, arguments: Sequence[str]) -> Callable[[list[str]], int]:
    if verb == "tokens" and arguments[:1] == ["encode"] and not any(word.startswith("--text") for word in arguments):
        from paribus.commands.tokens_encode import encode_command  # starts without Hydra

        return lambda given: encode_command(given[1:])
    from paribus.commands.verbs import FUNCTIONS

    return FUNCTIONS[verb]
