"""Log-probabilities of continuations under a `Decoder`.

A score does not depend on the batch it is computed in, up to rounding. Imports torch: import this module late.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear

from paribus.errors import NumericalError
from paribus.evaluation.models.batch_tokens import SCORED
from paribus.evaluation.models.shares import computed
from paribus.evaluation.progress import Progress
from paribus.evaluation.prompts.branches import BranchBatch, Group, group_pairs, make_batch
from paribus.evaluation.prompts.pairs import Pair
from paribus.modeling.decoder import Decoder
from paribus.modeling.device import batches
from paribus.training.distributed import ALONE, Host

LOGITS = 2**25
"""Largest number of logits held at once."""
NOT_A_NUMBER = "the model's output is not a number; its weights are not finite or overflow"


@dataclass(frozen=True)
class PairScores:
    """Of each pair, in the caller's order."""

    log_probability: NDArray[np.float64]
    """(n,) natural logarithm of the continuation's probability; 0 for an empty one."""
    greedy: NDArray[np.bool_]
    """(n,) whether each token is the most probable one."""


class Scorer:
    """Scores pairs with a causal language model on the model's device."""

    def __init__(self, model: Decoder, batch_tokens: int | None = None, host: Host = ALONE) -> None:
        """Of all processes of `host`, which score together, each has the model; they must be asked the same."""
        self.model = model
        self.batch_tokens = batch_tokens
        """The most tokens of a batch, as it is padded, unless one sequence has more; None leaves it to the device."""
        self.host = host
        self.context_length = model.architecture.context_length

    @property
    def _tokens_of_a_batch(self) -> int:
        return self.batch_tokens or SCORED[self.model.device.type]

    @torch.inference_mode()
    def score(self, pairs: Sequence[Pair], progress: Progress = lambda pairs: None) -> PairScores:
        """Log-probability of each pair's continuation; pairs must fit the context length (`pairs.fit`).

        Raises NumericalError when the model gives something that is not a number, OutOfMemoryError for its kind.
        """
        log_probability = np.zeros(len(pairs))
        greedy = np.ones(len(pairs), np.bool_)
        for places, token_scores, right in self._scored(pairs, progress):
            np.add.at(log_probability, places, token_scores)
            np.logical_and.at(greedy, places, right)
        if not np.isfinite(log_probability).all():
            raise NumericalError(NOT_A_NUMBER)
        return PairScores(log_probability, greedy)

    @torch.inference_mode()
    def token_scores(self, pairs: Sequence[Pair], progress: Progress = lambda pairs: None) -> NDArray[np.float64]:
        """Log-probability of each token of the pairs' continuations, pair after pair; raises as `score` does."""
        ends = np.cumsum([len(pair.continuation) for pair in pairs])
        scores = np.zeros(int(ends[-1]) if len(ends) else 0)
        for places, token_scores, _ in self._scored(pairs, progress):
            first = np.flatnonzero(np.diff(places, prepend=-1))
            within = np.arange(len(places)) - np.repeat(first, np.diff(first, append=len(places)))
            lengths = np.array([len(pairs[place].continuation) for place in places[first]])
            starts = np.repeat(ends[places[first]] - lengths, np.diff(first, append=len(places)))
            scores[starts + within] = token_scores
        if not np.isfinite(scores).all():
            raise NumericalError(NOT_A_NUMBER)
        return scores

    def _scored(
        self, pairs: Sequence[Pair], progress: Progress
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]]:
        """By batches, of each scored token the place of its pair, its log-probability and whether none is likelier."""
        scored = [place for place, pair in enumerate(pairs) if len(pair.continuation)]
        progress(len(pairs) - len(scored))
        groups = group_pairs([pairs[place] for place in scored])
        parts = batches(groups, lambda group: group.length, self._tokens_of_a_batch)
        finished = _of_groups(groups, len(scored), progress)
        found = computed(self.host, "scoring", parts, self._tokens, Group.ids, finished)
        for _, (members, token_scores, right) in found:
            yield np.array(scored)[members], token_scores, right

    @torch.inference_mode()
    def predictions(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """(place in `pairs`, log-probability of every token, (vocabulary size,)) for the place of each pair's last
        token; pairs must fit the context length and have a continuation.

        In no particular order. Raises NumericalError and OutOfMemoryError as `score` does.
        """
        parts = batches(group_pairs(pairs), lambda group: group.length, self._tokens_of_a_batch)
        # In each process all of them: their results are larger than what is computed for them.
        for _, found in computed(ALONE, "scoring", parts, self._predictions, Group.ids):
            yield from found

    def _predictions(self, groups: Sequence[Group]) -> list[tuple[int, NDArray[np.float64]]]:
        batch, device = make_batch(groups), self.model.device
        last = np.flatnonzero(np.append(np.diff(batch.members) != 0, True))
        hidden = self._hidden(batch, device)[batch.rows[last], batch.columns[last]]
        logs = (
            linear(hidden, self.model.output_weight.to(hidden.dtype)).float().log_softmax(dim=1).double().cpu().numpy()
        )
        if not np.isfinite(logs).all():
            raise NumericalError(NOT_A_NUMBER)
        return list(zip(batch.members[last].tolist(), logs, strict=True))

    def _tokens(self, groups: Sequence[Group]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Of each scored token the pair, its log-probability, and whether none is likelier."""
        batch, device = make_batch(groups), self.model.device
        hidden = self._hidden(batch, device)
        hidden = hidden[torch.from_numpy(batch.rows).to(device), torch.from_numpy(batch.columns).to(device)]
        targets = torch.from_numpy(batch.targets).to(device)
        chunk = max(1, LOGITS // self.model.architecture.vocab_size)
        scores, best, output = [], [], self.model.output_weight.to(hidden.dtype)
        for start in range(0, len(targets), chunk):
            logits = linear(hidden[start : start + chunk], output).float()
            chosen = logits.gather(1, targets[start : start + chunk, None]).squeeze(1)
            scores.append((chosen - logits.logsumexp(dim=1)).cpu())
            best.append(logits.argmax(dim=1).cpu())
        return batch.members, torch.cat(scores).double().numpy(), torch.cat(best).numpy() == batch.targets

    def _hidden(self, batch: BranchBatch, device: torch.device) -> torch.Tensor:
        ids = torch.from_numpy(batch.ids).to(device)
        hidden: torch.Tensor
        if batch.branched:
            positions, branch = (torch.from_numpy(part).to(device) for part in (batch.positions, batch.branch))
            hidden = self.model(ids, positions, _mask(branch))
        else:
            hidden = self.model(ids)
        return hidden


def _of_groups(groups: Sequence[Group], pairs: int, progress: Progress) -> Progress:
    """Tells `progress` of pairs where groups are finished, the longest first."""
    ends = np.cumsum([0, *(len(group.members) for group in groups)])
    done = 0

    def finished(number: int) -> None:
        nonlocal done
        progress(int(ends[done + number] - ends[done]))
        done += number

    return finished


def _mask(branch: torch.Tensor) -> torch.Tensor:
    """(sequences, 1, length, length) boolean, true where a token attends: backwards, to the context or its branch."""
    length = branch.shape[1]
    backwards = torch.ones(length, length, dtype=torch.bool, device=branch.device).tril()
    related = (branch[:, None, :] == 0) | (branch[:, None, :] == branch[:, :, None])
    return (backwards & related)[:, None]
