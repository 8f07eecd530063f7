"""The overrides of a command that can be composed, and what is wrong with the others."""

from collections.abc import Sequence

from paribus.config.arguments import Overrides, torn
from paribus.config.composing.composer import Composer
from paribus.config.composing.known import choices_with, reference_of, swept_groups, unknown_choice, unknown_key
from paribus.config.composing.override import add_found, last_of_each, parse_override
from paribus.config.validate import Problem


def usable_overrides(overrides: Sequence[str], composer: Composer) -> tuple[list[Problem], Overrides]:
    """Judge each override by itself, so that one bad override does not hide the others."""
    pieces = torn(overrides)
    problems = [Problem(each.key, each.told) for each in pieces]
    whole = [text for text in overrides if not any(text in each.words for each in pieces)]
    parsed = [override for text in whole if (override := parse_override(text, problems)) is not None]
    choices = [override for override in parsed if composer.is_choice(override)]
    accepted = [override for override in choices if not add_found(problems, unknown_choice(override, composer))]
    # Keys are looked up in what the choices compose to, without values: a bad value must not hide an unknown key.
    reference = reference_of(accepted, composer)
    swept = swept_groups(accepted, reference, composer)
    only_for: dict[str, frozenset[tuple[str, str]]] = {}
    for override in (override for override in parsed if override not in choices):
        path = str(override.key_or_group)
        knowing = choices_with(override, accepted, swept, composer)
        if knowing is not None:
            only_for[path] = knowing
        if knowing or not add_found(problems, unknown_key(override, reference)):
            accepted.append(override)
    accepted = last_of_each(accepted)
    return problems, Overrides(
        [o.input_line or "" for o in accepted if not o.is_sweep_override()],
        [o.input_line or "" for o in accepted if o.is_sweep_override()],
        {path: knowing for path, knowing in only_for.items() if knowing},
    )
