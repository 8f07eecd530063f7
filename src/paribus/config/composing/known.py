"""Which choices and fields there are: those that an override names and no file has are told with the nearest name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from paribus.config.arguments import choosing
from paribus.config.arms import ARM, AS_ARMS, CHOSEN
from paribus.config.composing.composer import Composer
from paribus.config.composing.override import choices_of, parse_override
from paribus.config.schema import has_field, kinds_with
from paribus.config.validate import Problem, did_you_mean, unknown


def unknown_choice(override: Override, composer: Composer) -> list[Problem]:
    """What is wrong with the choices of a group; nothing where its files are there."""
    group = str(override.key_or_group)
    if group == "hydra/sweeper" and choices_of(override) != ["basic"]:
        told = "no sweeper is used: paribus composes all jobs before the first runs, and hands them to the launcher"
        return [Problem(group, f"{told}; list what is to be compared, -m seed=0,1,2")]
    options = composer.options(group)
    chosen = [] if override.is_delete() else choices_of(override)
    if not chosen and not override.is_delete():
        return [Problem(group, f"names no choice; known: {', '.join(options)}")]
    if not override.is_sweep_override() and not override.is_delete() and isinstance(override.value(), list):
        return [Problem(group, f"takes one choice; -m {group}={','.join(chosen)} makes a run of each")]
    if group == ARM and (empty := [arm for arm in chosen if arm in options and composer.chosen_by(arm) == {}]):
        return [Problem(ARM, f"{arm}.yaml is no arm: {AS_ARMS}") for arm in empty]
    wrong = [v for v in chosen if v not in options and v != "None"]
    nested = [v for v in wrong if "/" in v and Path(v).name in composer.options(f"{group}/{Path(v).parent}")]
    known = composer.nested_options(group) if len(nested) < len(wrong) else options
    return [Problem(group, unknown(value, known)) for value in wrong if value not in nested]


def reference_of(choices: list[Override], composer: Composer, *more: str) -> DictConfig:
    """The composed configuration that keys are looked up in: the first value of every choice."""
    lines = [choosing(o.get_key_element(), choices_of(o)[0]) for o in choices if not o.is_delete()]
    try:
        return composer.whole([*lines, *more])
    except Exception:  # told by whoever composes the whole, with all overrides
        return composer.whole([])


def unknown_key(override: Override, reference: DictConfig) -> list[Problem]:
    """An override of a key that is not there. What `+` appends is judged with the whole configuration."""
    path = str(override.key_or_group)
    if override.is_add() or override.is_force_add():
        return []
    node: Any = reference
    for depth, part in enumerate(path.split(".")):
        if not isinstance(node, DictConfig):
            return []
        keys = [str(key) for key in node]
        if part not in keys:
            where = ".".join(path.split(".")[:depth])
            if has_field(".".join(path.split(".")[: depth + 1])):
                return [Problem(path, f"no file gives {part!r}, so it takes a plus: +{override.input_line}")]
            known, kinds = [key for key in keys if key != "hydra"], kinds_with(where, part)
            if not kinds and not path.startswith("hydra.") and not did_you_mean(part, known):
                listed = f"paribus explain {where}".strip()
                return [Problem(path, f"{part!r} is unknown; `{listed}` says what there is")]
            told = f"{unknown(part, known)}{f' (in {where})' if where else ''}"
            return [Problem(path, f"{told}; {where} of kind {' or '.join(kinds)} has it" if kinds else told)]
        node = node._get_node(part)
    return _block_as_value(override, node)


def _block_as_value(override: Override, node: Any) -> list[Problem]:
    """A value, `seeds=0,1`, for a block of fields that is no group; `seeds={order:0},{order:1}` gives fields."""
    path, value = str(override.key_or_group), (override.input_line or "").partition("=")[2]
    if override.is_delete() or not isinstance(node, DictConfig) or "${" in value:
        return []
    given = override.value()
    if all(each is None or isinstance(each, dict) for each in getattr(given, "list", [given])):
        return []
    fields = ", ".join(f"{path}.{key!s}" for key in node)
    return [Problem(path, f"is a block of fields, which has no value; its fields: {fields}")]


def swept_groups(choices: list[Override], reference: DictConfig, composer: Composer) -> dict[str, list[str]]:
    """Group -> its choices, of the groups of which a multirun takes several."""
    swept = {str(o.key_or_group): choices_of(o) for o in choices if o.is_sweep_override()}
    parameters = OmegaConf.select(reference, "hydra.sweeper.params") or {}
    texts = [f"{key}={value}" for key, value in parameters.items() if composer.options(str(key))]
    # What cannot be parsed is told with all that is swept (`sweep.py`).
    listed = [override for text in texts if (override := parse_override(text, [])) is not None]
    return {str(o.key_or_group): choices_of(o) for o in listed} | swept


def choices_with(
    override: Override, choices: list[Override], swept: Mapping[str, list[str]], composer: Composer
) -> frozenset[tuple[str, str]] | None:
    """The choices of a swept group with which a field is there; None where it is with all, or it was appended.

    The group is the field's own, or that of arms where these choose in it.
    """
    own = str(override.key_or_group).split(".")[0]
    group = own if own not in CHOSEN or len(swept.get(own, [])) > 1 else ARM
    if len(swept.get(group, [])) < 2 or override.is_add() or override.is_force_add():
        return None
    others = [o for o in choices if str(o.key_or_group) != group and composer.is_choice(o)]
    references = {choice: reference_of(others, composer, choosing(group, choice)) for choice in swept[group]}
    known = [choice for choice, reference in references.items() if not unknown_key(override, reference)]
    return None if len(known) == len(references) else frozenset((group, choice) for choice in known)
