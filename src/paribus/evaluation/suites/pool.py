"""Examples for prompts, kept apart from the items that are scored.

Where a training split lies beside the scored file, examples come from it and the whole scored split counts. Otherwise
some items are split off by a digest of their content. Either way no scored item equals an example.
"""

from collections.abc import Iterable, Sequence

from paribus.evaluation.tasks.items import AnyItem, ItemSet

TRAINING = 1024
"""Items of a training split that examples are drawn from; as many as a prompt has where that is more."""
SPLIT_OFF = 64
"""Items that are split off from the scored ones; as many as a prompt has where that is more."""


def split_pool(items: Sequence[AnyItem], training: Sequence[AnyItem] | None, shots: int) -> ItemSet:
    """Scored items in file order and those that prompts of at most `shots` examples draw from, by smallest digests."""
    if training is not None:
        scored = {item.digest() for item in items}
        outside = {item.digest(): item for item in reversed(training) if item.digest() not in scored}
        return ItemSet(items, [outside[key] for key in sorted(outside)[: training_size(shots)]], "train split")
    distinct = {item.digest(): item for item in reversed(items)}
    chosen = sorted(distinct)[: split_off(len(distinct), shots)]
    rest = _without(items, set(chosen))
    return ItemSet(
        rest, [distinct[key] for key in chosen], "split off from the scored items, of which a quarter at most"
    )


def training_size(shots: int) -> int:
    """The most items of a training split that prompts of that many examples draw from."""
    return max(TRAINING, shots)


def split_off(distinct: int, shots: int) -> int:
    """How many of that many distinct items are split off for prompts of that many examples: a quarter at most."""
    return min(max(SPLIT_OFF, shots), distinct // 4)


def _without(items: Iterable[AnyItem], digests: set[str]) -> list[AnyItem]:
    return [item for item in items if item.digest() not in digests]
