"""Examples for prompts, kept apart from the items that are scored.

Where a training split lies beside the scored file, examples come from it and the whole scored split counts. Otherwise
some items are split off by a digest of their content. Either way no scored item equals an example.
"""

from collections.abc import Iterable, Sequence

from paribus.evaluation.tasks.items import AnyItem, ItemSet

POOL = 64
"""Largest number of items that examples are drawn from."""


def split_pool(items: Sequence[AnyItem], training: Sequence[AnyItem] | None) -> ItemSet:
    """Scored items in file order and at most `POOL` others, those of the smallest digests.

    Without `training` the pool is a quarter of the distinct items at most.
    """
    if training is not None:
        scored = {item.digest() for item in items}
        outside = {item.digest(): item for item in reversed(training) if item.digest() not in scored}
        return ItemSet(items, [outside[key] for key in sorted(outside)[:POOL]], "train split")
    distinct = {item.digest(): item for item in reversed(items)}
    chosen = sorted(distinct)[: min(POOL, len(distinct) // 4)]
    rest = _without(items, set(chosen))
    return ItemSet(rest, [distinct[key] for key in chosen], "split off from the scored items")


def _without(items: Iterable[AnyItem], digests: set[str]) -> list[AnyItem]:
    return [item for item in items if item.digest() not in digests]
