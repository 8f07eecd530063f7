"""Items whose prompt fits every run: a prompt that one tokenizer cuts and another does not is not one question.

A prompt longer than the context loses its beginning, so arms with other tokens would answer after other examples, or
after none. Such items are left out for all, at all numbers of shots, so that means over shots stay means of one item.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from paribus.reporting.significance.least import ITEMS_TO_JUDGE
from paribus.reporting.table.scores import Block, RunScores


@dataclass(frozen=True)
class LeftOut:
    """Of a task, how many items have a prompt that some run cut."""

    cut: int
    items: int
    by_shots: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Which of them at each number of shots."""

    def whole(self, shots: Iterable[int]) -> int:
        """Items whose prompts of these numbers of shots fit every run."""
        return self.items - len(frozenset[str]().union(*(self.by_shots.get(number, ()) for number in shots)))

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
    cut: dict[str, dict[int, set[str]]] = {}
    items: dict[str, set[str]] = {}
    for found in scores.values():
        for (task, shots), named in found.truncated.items():
            cut.setdefault(task, {}).setdefault(shots, set()).update(named)
        for (task, _, _), block in found.blocks.items():
            items.setdefault(task, set()).update(block.items)
    every = {task: set[str]().union(*by_shots.values()) for task, by_shots in cut.items()}
    out = {
        task: LeftOut(
            len(every[task]), len(items[task]), {shots: frozenset(named) for shots, named in cut[task].items()}
        )
        for task in sorted(cut)
        if every[task] and task in items
    }
    gone = {task: every[task] for task, about in out.items() if not about.kept}
    return {run: _without(found, gone) for run, found in scores.items()}, out


def _without(scores: RunScores, gone: Mapping[str, set[str]]) -> RunScores:
    blocks = {key: _kept(block, gone[key[0]]) if key[0] in gone else block for key, block in scores.blocks.items()}
    return replace(scores, blocks=blocks)


def _kept(block: Block, gone: set[str]) -> Block:
    chosen = np.array([place for place, item in enumerate(block.items) if item not in gone], dtype=np.int64)
    items, hashes = (tuple(each[place] for place in chosen.tolist()) for each in (block.items, block.hashes))
    return Block(items, hashes, np.ascontiguousarray(block.values[:, chosen]))
