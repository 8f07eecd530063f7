"""Log-probabilities of continuations under a `Decoder`, the checkpoints that are scored, and their batches.

A score does not depend on the batch it is computed in, up to rounding. Batches are laid out alike in every process, and
each is computed by one process: so numbers are those of one process to the last bit. A process that halves a batch for
want of memory changes the last bits of that batch. Imports torch: import this module late.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch.nn.functional import linear

from paribus.config.groups.training import TrainingConfig, checkpoint_steps, too_few_checkpoints
from paribus.errors import ConfigurationError, DataError, InfrastructureError, NumericalError
from paribus.evaluation.pairs import BranchBatch, Group, Ids, Pair, PairScores, Progress, group_pairs, make_batch
from paribus.modeling.architecture import WEIGHTS
from paribus.modeling.decoder import Decoder
from paribus.modeling.device import BatchMemory, batches, expect_many_shapes, resolve_device, set_products
from paribus.modeling.models import load_model
from paribus.store.files import publish_directory
from paribus.training.distributed import ALONE, Host
from paribus.training.sharded import StoredTensors

LOGITS = 2**25
"""Largest number of logits held at once."""
NOT_A_NUMBER = "the model's output is not a number; its weights are not finite or overflow"


class Scorer:
    """Scores pairs with a causal language model on the model's device."""

    def __init__(self, model: Decoder, batch_tokens: int | None = None, host: Host = ALONE) -> None:
        """Each process of `host` has the model and must make the same calls."""
        self.model = model
        self.batch_tokens = batch_tokens
        """The most tokens of a batch, as it is padded, unless one sequence has more; None leaves it to the device."""
        self.host = host
        self.context_length = model.architecture.context_length

    @property
    def _tokens_of_a_batch(self) -> int:
        return self.batch_tokens or SCORED_TOKENS[self.model.device.type]

    @torch.inference_mode()
    def score(self, pairs: Sequence[Pair], progress: Progress = lambda pairs: None) -> PairScores:
        """Log-probability of each pair's continuation; pairs must fit the context length (`fit_pair`).

        Raises NumericalError where the model's output is not a number, OutOfMemoryError where memory does not suffice.
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
        """Yield for each batch the pair of each scored token, its log-probability, and True if it is the likeliest."""
        scored = [place for place, pair in enumerate(pairs) if len(pair.continuation)]
        progress(len(pairs) - len(scored))
        groups = group_pairs([pairs[place] for place in scored])
        parts = batches(groups, lambda group: group.length, self._tokens_of_a_batch)
        finished = _group_progress(groups, len(scored), progress)
        results = computed(self.host, "scoring", parts, self._tokens, Group.ids, finished)
        for _, (members, token_scores, right) in results:
            yield np.array(scored)[members], token_scores, right

    @torch.inference_mode()
    def predictions(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """(place in `pairs`, log-probability of every token, (vocabulary size,)) for the place of each pair's last
        token; pairs must fit the context length and have a continuation.

        In no particular order. Raises NumericalError and OutOfMemoryError as `score` does.
        """
        parts = batches(group_pairs(pairs), lambda group: group.length, self._tokens_of_a_batch)
        # Every process computes all batches: to send the results would cost more than to compute them.
        for _, scores in computed(ALONE, "scoring", parts, self._predictions, Group.ids):
            yield from scores

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
        """Pairs of scored tokens, their log-probabilities, and True where no token is likelier."""
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
            hidden = self.model(ids, positions, _branch_mask(branch))
        else:
            hidden = self.model(ids)
        return hidden


def _group_progress(groups: Sequence[Group], pairs: int, progress: Progress) -> Progress:
    """Callback that takes a number of groups just finished, the longest first, and gives `progress` their pairs."""
    ends = np.cumsum([0, *(len(group.members) for group in groups)])
    done = 0

    def finished(number: int) -> None:
        nonlocal done
        progress(int(ends[done + number] - ends[done]))
        done += number

    return finished


def _branch_mask(branch: torch.Tensor) -> torch.Tensor:
    """(sequences, 1, length, length) boolean, true where a token attends: backwards, to the context or its branch."""
    length = branch.shape[1]
    backwards = torch.ones(length, length, dtype=torch.bool, device=branch.device).tril()
    related = (branch[:, None, :] == 0) | (branch[:, None, :] == branch[:, :, None])
    return (backwards & related)[:, None]


Item = TypeVar("Item")
Result = TypeVar("Result")


def computed(  # noqa: PLR0917 (who computes what of which, and who is notified)
    host: Host,
    doing: str,
    parts: Sequence[Sequence[Item]],
    compute: Callable[[Sequence[Item]], Result],
    ids: Callable[[Item], Iterable[Ids]],
    progress: Progress = lambda items: None,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """Yield every batch, or the parts it was halved into, with its results; every process must iterate.

    `progress` gets the number of items just finished. Raises OutOfMemoryError, which names what was `doing`, where a
    single item does not fit, and InfrastructureError where the `ids` of processes differ.
    """
    memory = BatchMemory(doing)
    if not parts:
        return
    if host.size == 1:
        for part in parts:
            for items, result in memory.computed(compute, part):
                yield items, result
                progress(len(items))
        return
    _check_agreement(host, parts, ids)
    pending, results = sum(map(len, parts)), []
    for number in range(host.rank, len(parts), host.size):
        start = 0
        for items, result in memory.computed(compute, parts[number]):
            results.append((number, start, len(items), result))
            start += len(items)
        # The other processes have finished about as many.
        finished = min(pending, len(parts[number]) * host.size)
        pending -= finished
        progress(finished)
    for number, start, size, result in sorted(
        (entry for gathered in host.gathered(results) for entry in gathered), key=lambda entry: entry[:2]
    ):
        yield parts[number][start : start + size], result
    progress(pending)


def _check_agreement(host: Host, parts: Sequence[Sequence[Item]], ids: Callable[[Item], Iterable[Ids]]) -> None:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)};".encode())
        for item in part:
            for row in ids(item):
                digest.update(np.asarray(row, np.int64).tobytes() + b";")
    if len(set(host.gathered(digest.hexdigest()))) > 1:
        raise InfrastructureError("the processes of an evaluation have different items to score; run it in one process")


SCORED_TOKENS: Mapping[str, int] = MappingProxyType({"cpu": 2_048, "cuda": 32_768})
"""Tokens of a batch of pairs by type of device, where `evaluation.batch_tokens` is null."""
WRITTEN_TOKENS: Mapping[str, int] = MappingProxyType({"cpu": 16_384, "cuda": 32_768})
"""Tokens of a batch of generated texts, likewise; there a forward pass computes one token of each text."""


STEP = re.compile(r"step_(\d+)")


def last_checkpoints(
    artifact: Path, training: TrainingConfig, number: int, asked: str = "evaluation.last_checkpoints"
) -> dict[int, Path]:
    """Step -> directory of the checkpoints at the last `number` shares of a training, ascending.

    Raises ConfigurationError, by the path `asked`, if the training has too few steps for so many checkpoints.
    """
    directories = {int(match[1]): path for path in artifact.iterdir() if (match := STEP.fullmatch(path.name))}
    if not directories:
        raise DataError(f"{artifact} has no checkpoint step_XXXXXXXX")
    steps = max(directories)
    if few := too_few_checkpoints(training, steps, number):
        raise ConfigurationError(f"{asked}: {few}")
    chosen = checkpoint_steps(training.checkpoints, steps, number)
    if missing := [step for step in chosen if step not in directories]:
        raise DataError(f"{artifact} has no checkpoint of steps {missing}; there are those of {sorted(directories)}")
    return {step: directories[step] for step in chosen}


def load_checkpoint_model(checkpoint: Path, device: str, precision: str = "fp32") -> Any:
    """The model on the device, its weights in float32, computing in `fp32`, `tf32` or `bf16`.

    Raises ConfigurationError for TF32 on a CPU, which has none: its scores would be taken for those of a GPU.
    """
    resolved = resolve_device(device, "evaluation.device")
    set_products(precision, resolved, "evaluation.precision")
    expect_many_shapes()
    model = load_model(checkpoint).to(resolved).eval()
    if isinstance(model, Decoder) and precision == "bf16":
        model.computes_in = torch.bfloat16
    return model


def averaged_checkpoints(checkpoints: Mapping[int, Path], number: int, directory: Path, host: Host) -> dict[int, Path]:
    """Average the weights of each `number` consecutive checkpoints; directories by the step of the last, ascending.

    With a `number` of 1 they are `checkpoints`. Else the main process of `host` writes them below `directory`, unless
    they exist, and all wait for it. Raises DataError where the checkpoints are not of one model.
    """
    steps, paths = list(checkpoints), list(checkpoints.values())
    if number == 1:
        return dict(checkpoints)
    averaged = {step: directory / paths[place].name for place, step in enumerate(steps) if place >= number - 1}
    if host.main:
        for place, target in enumerate(averaged.values()):
            if not target.is_dir():
                _write_average(paths[place : place + number], target)
    host.wait()
    return averaged


def mean_weights(directories: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of each tensor over Hugging Face directories, summed in float64 and returned in float32.

    Vaswani et al. 2017, section 6.1: "a single model obtained by averaging the last 5 checkpoints". Raises DataError,
    which names two directories whose shapes of weights differ.
    """
    files = [StoredTensors.of([path / WEIGHTS]) for path in directories]
    for (first, stored), (second, other) in pairwise(zip(directories, files, strict=True)):
        if stored.shapes != other.shapes:
            raise DataError(f"{first} and {second} are no checkpoints of one model: shapes of weights differ")
    means = {}
    for name in files[0].shapes:
        total = files[0].whole(name).double()
        for file in files[1:]:
            total += file.whole(name)
        means[name] = (total / len(files)).float()
    return means


def _write_average(sources: Sequence[Path], target: Path) -> None:
    """Publish a copy of the last checkpoint with the mean weights, whole or not at all."""
    partial, weights = target.with_name(f"{target.name}.partial"), mean_weights(sources)
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(sources[-1], partial, ignore=shutil.ignore_patterns(WEIGHTS))
    save_file(weights, partial / WEIGHTS, {"format": "pt"})
    publish_directory(partial, target)
