"""The verbs that take Hydra's overrides: parse, show or refuse, and hand over."""

from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console

from paribus.commands.help.verb_help import verb_help
from paribus.commands.json_output import print_json
from paribus.config.arguments import Command, parse
from paribus.pipeline.display import open_console

EXIT_REFUSED_BY_RUN = 1
"""Of a plan that is whole, for scripts that go on with `paribus run`, which could not begin or would refuse it."""


def _with_overrides(name: str, function: Callable[[Command, Console], int]) -> Callable[[Sequence[str]], int]:
    """A verb that lets Hydra answer --cfg and the like, and otherwise runs `function`."""

    def verb(arguments: Sequence[str]) -> int:
        command = parse(arguments, name)
        if command.helps:
            open_console().print(verb_help(name), markup=False, highlight=False, soft_wrap=True)
            return 0
        if command.shows:
            from paribus.config.hydra_session import show_with_hydra

            show_with_hydra(command)
            return 0
        # With --json standard output is for the document alone.
        return function(command, open_console(stderr=command.asks_json))

    return verb


def _run(command: Command, console: Console) -> int:
    from paribus.commands.run import run_command

    return run_command(command, console)


def _plan(command: Command, console: Console) -> int:
    from paribus.checks import compose_command
    from paribus.pipeline.prepare import prepare
    from paribus.pipeline.root import OutputRoot
    from paribus.planning.plan import make_plan
    from paribus.planning.show import check_limit, plan_document, show_plan
    from paribus.tracking.destination import Destination

    say = partial(console.print, markup=False, soft_wrap=True)
    runs = prepare(compose_command(command), tolerate_missing=True)
    plan = make_plan(runs, say)
    if command.asks_json:
        print_json(plan_document(plan, runs))
    else:
        show_plan(plan, console)
        if (config := runs[0].job.config).tracking.kind == "mlflow":
            say(f"shown in {Destination.resolve(config.tracking, OutputRoot.of(config).path).named}")
    check_limit(plan)
    return 0 if plan.would_begin else EXIT_REFUSED_BY_RUN


def _status(command: Command, console: Console) -> int:
    from paribus.commands.chosen import choose, names_nothing, root_of
    from paribus.commands.status import root_document, show_root, show_status, status_document

    if names_nothing(command):
        root = root_of(command.overrides)
        if command.asks_json:
            print_json(root_document(root))
        else:
            show_root(root, console)
        return 0
    runs = choose(command, partial(console.print, style="dim", markup=False, soft_wrap=True)).runs
    if not command.asks_json:
        return show_status(runs, console)
    document = status_document(runs)
    print_json(document)
    return 0 if document["done"] else 1


def _report(command: Command, console: Console) -> int:
    from paribus.commands.report.verb import report_command

    return report_command(command, console)


def _sync(arguments: Sequence[str]) -> int:
    from paribus.tracking.sync import main

    return main(arguments)


def _orders(command: Command, console: Console) -> int:
    from paribus.commands.orders import orders_command

    return orders_command(command, console)


def _tokens(arguments: Sequence[str]) -> int:
    from paribus.commands.tokens.verb import tokens_command

    return tokens_command(arguments, open_console())


def _rerun(arguments: Sequence[str]) -> int:
    from paribus.commands.rerun.verb import rerun_command

    return rerun_command(arguments, open_console())


def _explain(arguments: Sequence[str]) -> int:
    from paribus.commands.help.explain import explain_command

    return explain_command(arguments, open_console())


def _export(arguments: Sequence[str]) -> int:
    from paribus.commands.kept.export import export_command

    return export_command(arguments, open_console())


def _clean(arguments: Sequence[str]) -> int:
    from paribus.commands.kept.clean import clean_command

    return clean_command(arguments, open_console())


VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": _with_overrides("run", _run),
    "plan": _with_overrides("plan", _plan),
    "status": _with_overrides("status", _status),
    "report": _with_overrides("report", _report),
    "export": _export,
    "clean": _clean,
    "orders": _with_overrides("orders", _orders),
    "tokens": _tokens,
    "sync": _sync,
    "rerun": _rerun,
    "explain": _explain,
}
