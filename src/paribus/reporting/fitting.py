"""Items whose prompt fits every run: a prompt that one tokenizer cuts and another does not is not one question.

A prompt longer than the context loses its beginning, so arms with other tokens would answer after other examples, or
after none. Such items are left out for all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from paribus.reporting.scores import Block, Scores

Place = tuple[str, int]
"""Task and number of shots."""


@dataclass(frozen=True)
class LeftOut:
    """Of a task and number of shots, how many items have a prompt that some run cut."""

    cut: int
    items: int

    @property
    def kept(self) -> bool:
        """Whether all items stay, since none would be left."""
        return self.cut == self.items


def cut_alike(scores: Mapping[str, Scores]) -> bool:
    """Whether all runs cut the prompts of the same items."""
    found = [{place: items for place, items in each.truncated.items() if items} for each in scores.values()]
    return all(each == found[0] for each in found)


def fitting(scores: Mapping[str, Scores]) -> tuple[dict[str, Scores], dict[Place, LeftOut]]:
    """Scores by run id without items that any run cut, where others are left, and what was cut by task and shots."""
    cut: dict[Place, set[str]] = {}
    for found in scores.values():
        for place, items in found.truncated.items():
            cut.setdefault(place, set()).update(items)
    blocks = {key[:2]: block for found in scores.values() for key, block in found.blocks.items()}
    out = {
        place: LeftOut(len(items), len(blocks[place].items))
        for place, items in sorted(cut.items())
        if items and place in blocks
    }
    gone = {place: cut[place] for place, about in out.items() if not about.kept}
    return {run: _without(found, gone) for run, found in scores.items()}, out


def _without(scores: Scores, gone: Mapping[Place, set[str]]) -> Scores:
    blocks = {key: _kept(block, gone[key[:2]]) if key[:2] in gone else block for key, block in scores.blocks.items()}
    return replace(scores, blocks=blocks)


def _kept(block: Block, gone: set[str]) -> Block:
    chosen = np.array([place for place, item in enumerate(block.items) if item not in gone], dtype=np.int64)
    items, hashes = (tuple(each[place] for place in chosen.tolist()) for each in (block.items, block.hashes))
    return Block(items, hashes, np.ascontiguousarray(block.values[:, chosen]))
