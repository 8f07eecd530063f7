"""Items whose prompt fits every run: a prompt that one tokenizer cuts and another does not is not one question.

A prompt longer than the context loses its beginning, so arms with other tokens would answer after other examples, or
after none. Such items are left out for all, at all numbers of shots, so that means over shots stay means of one item.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from paribus.reporting.significance.least import ITEMS_TO_JUDGE
from paribus.reporting.table.scores import Block, RunScores


@dataclass(frozen=True)
class LeftOut:
    """Of a task, how many items have a prompt that some run cut."""

    cut: int
    items: int

    @property
    def kept(self) -> bool:
        """Whether all items stay, since too few would be left."""
        return self.items - self.cut < ITEMS_TO_JUDGE


def cut_alike(scores: Mapping[str, RunScores]) -> bool:
    """Whether all runs cut the prompts of the same items, of the tasks that they were scored on."""
    found: dict[tuple[str, int], set[frozenset[str]]] = {}
    for each in scores.values():
        for place in {key[:2] for key in each.blocks}:
            found.setdefault(place, set()).add(frozenset(each.truncated.get(place, ())))
    return all(len(cuts) == 1 for cuts in found.values())


def fitting(scores: Mapping[str, RunScores]) -> tuple[dict[str, RunScores], dict[str, LeftOut]]:
    """Scores by run id without items that any run cut, where enough are left, and what was cut by task."""
    cut: dict[str, set[str]] = {}
    items: dict[str, set[str]] = {}
    for found in scores.values():
        for (task, _), named in found.truncated.items():
            cut.setdefault(task, set()).update(named)
        for (task, _, _), block in found.blocks.items():
            items.setdefault(task, set()).update(block.items)
    out = {task: LeftOut(len(cut[task]), len(items[task])) for task in sorted(cut) if cut[task] and task in items}
    gone = {task: cut[task] for task, about in out.items() if not about.kept}
    return {run: _without(found, gone) for run, found in scores.items()}, out


def _without(scores: RunScores, gone: Mapping[str, set[str]]) -> RunScores:
    blocks = {key: _kept(block, gone[key[0]]) if key[0] in gone else block for key, block in scores.blocks.items()}
    return replace(scores, blocks=blocks)


def _kept(block: Block, gone: set[str]) -> Block:
    chosen = np.array([place for place, item in enumerate(block.items) if item not in gone], dtype=np.int64)
    items, hashes = (tuple(each[place] for place in chosen.tolist()) for each in (block.items, block.hashes))
    return Block(items, hashes, np.ascontiguousarray(block.values[:, chosen]))
