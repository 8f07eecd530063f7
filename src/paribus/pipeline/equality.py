"""All else being equal, before anything runs: whether the runs of a command may stand in one table.

The rule is that of the table (`paribus.reporting.equality`), applied to what is known of runs in advance.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.pipeline.graph import Node, group_of_files
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.run_names import labels
from paribus.reporting.equality import (
    AVERAGED_SHARES,
    FINGERPRINT,
    MISSING,
    SCORED_SHARES,
    SHARES,
    Difference,
    FairnessError,
    covered,
    differing,
    flatten,
    scored_at_other_shares,
)

_NAMED = 3
_CONTINUATION = ("continuation_items", "context_characters", "continuation_characters")
_HELDOUT = ("heldout_documents", "document_bytes")
_SCORED = (
    "corpus",
    f"{FINGERPRINT}corpus",
    f"{FINGERPRINT}evaluation",
    *(f"evaluation.{name}" for name in ("limit", "last_checkpoints", "clean_overlap", *_HELDOUT, *_CONTINUATION)),
)
"""What decides items, held-out text and scored checkpoints, which no factor excuses. A task or a number of shots that
some runs lack is a gap in their row."""
_SIZED = "model"
"""The group whose choices are sizes, and not kinds: which one was typed is not in the configuration."""


def run_identity(config: RunConfig, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """The identity fields of a run, and under `fingerprints` those of the files of each group, by group."""
    found = {
        group_of_files(node.stage, node.config): node.identity["identity"]["fingerprint"]
        for node in nodes.values()
        if _has_files(node)
    }
    values: dict[str, Any] = identity(config)
    return values | {"fingerprints": found}


def undeclared(runs: Sequence[PreparedRun]) -> FairnessError | None:
    """What runs differ in beside the factors of their command and the seed, with the remedy; None for nothing."""
    fields = [flatten(run_identity(run.job.config, run.nodes)) for run in runs]
    factors, named = runs[0].factors, list(zip(labels(runs), fields, strict=True))
    found = differing(named, factors)
    if found:
        message = (
            f"the runs differ in more than the declared factors ({', '.join(factors) or 'none'}) and the seed, so the "
            "comparison table would refuse them:"
        )
        return FairnessError(message, found, _remedy(found))
    if scored := [difference for difference in differing(named, ()) if covered(difference.path, _SCORED)]:
        message = "the runs would be scored on different items or text, so the comparison table would refuse them:"
        return FairnessError(message, scored, "Give all runs the same, or run each by a command of its own")
    if found := scored_at_other_shares(named):
        message = (
            "the runs would be scored at the last of several checkpoints, which stand at other shares of their "
            "budgets, so the comparison table would refuse them:"
        )
        alone = f"score the last one alone ({SCORED_SHARES}=1 {AVERAGED_SHARES}=1)"
        return FairnessError(message, found, f"Give all runs the same {SHARES}, or {alone}")
    return None


def _has_files(node: Node) -> bool:
    return "fingerprint" in node.identity["identity"]


def _remedy(found: Sequence[Difference]) -> str:
    groups = ",".join(dict.fromkeys(_group_of(difference) for difference in found))
    declare = f"or declare that it differs together with the other factors (factors=[{groups}])"
    settings = _settings(found)
    if not settings:
        files = all(difference.path.startswith(FINGERPRINT) for difference in found)
        return f"Let all runs {'read the same files' if files else 'have one choice'} ({groups}), {declare}"
    named = list(settings.items())[:_NAMED]
    one = "; ".join(" or ".join(f"{name}={value}" for value in values) for name, values in named)
    own = " ".join(f"{name}={','.join(values)}" for name, values in named)
    more = " ..." if len(settings) > _NAMED else ""
    if any(covered(difference.path, _SCORED) for difference in found):  # which no factor excuses
        return f"Give all runs the same ({one}{more}), or run each by a command of its own"
    return f"Give all runs the same ({one}{more}), or sweep it as a factor of its own (-m {own}{more}), {declare}"


def _settings(found: Sequence[Difference]) -> dict[str, list[str]]:
    """What would have to be typed for each value: the choice of a group where its kinds differ, else the field.

    The contents of files cannot be typed, nor can a family of models.
    """
    kinds = {_group_of(difference) for difference in found if difference.path == f"{_group_of(difference)}.kind"}
    settings: dict[str, list[str]] = {}
    for difference in found:
        group = _group_of(difference)
        if difference.path.startswith(FINGERPRINT) or (group in kinds and difference.path != f"{group}.kind"):
            continue
        if group in kinds and group == _SIZED:
            continue
        name = group if group in kinds else difference.path
        settings[name] = [_typed(value) for value, _ in difference.values if value != MISSING]
    return settings


def _group_of(difference: Difference) -> str:
    return difference.path.removeprefix(FINGERPRINT).split(".")[0]


def _typed(value: str) -> str:
    """A value as it is typed on the command line."""
    loaded = json.loads(value)
    if isinstance(loaded, list):
        return f"[{','.join(map(str, loaded))}]"
    return loaded if isinstance(loaded, str) else value
