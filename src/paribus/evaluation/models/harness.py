"""Our model and tokenizer behind lm-eval's interface, and our task files as lm-eval tasks.

Imports lm_eval and torch: import this module late.
"""

from collections.abc import Callable, Sequence
from operator import is_
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate

from paribus.evaluation.models.generation import Coder, GenerationRequest, Generator
from paribus.evaluation.models.scoring import Scorer
from paribus.evaluation.progress import counter
from paribus.evaluation.prompts.pairs import Pair, fit_pair, windows
from paribus.evaluation.prompts.requests import EncodedRequests, Item, encode_requests
from paribus.evaluation.tasks.files import read_config
from paribus.evaluation.tasks.items import read_records

Answer = tuple[float, bool]
"""Natural log-probability of a continuation, and whether greedy decoding gives it."""


class HarnessModel(TemplateLM):  # type: ignore[misc]
    """A language model of ours for lm-eval; texts become ids by the rule of `paribus.evaluation.prompts.pairs`.

    Requests are encoded once: the `scorer` of another checkpoint may be put in, and the same requests scored again.
    """

    def __init__(
        self, scorer: Scorer, tokenizer: Coder, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> None:
        super().__init__()
        self.scorer = scorer
        self.encoder = tokenizer
        self.progress = progress
        """Told the requests finished and their number."""
        self.truncated: set[Item] = set()
        """Items whose prompt lost its beginning to the context length."""
        self.omitted = 0.0
        """Largest share left out of a sum at a boundary, of all that was scored (`evaluation.prompts.boundary`)."""
        self._requests: list[Instance] = []
        self._encoded = EncodedRequests(0)

    @property
    def eot_token_id(self) -> int:
        """The end-of-document token."""
        return self.encoder.eos_id

    @property
    def max_length(self) -> int:
        """Context length of the model in tokens."""
        return self.scorer.context_length

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Token ids of a text, without special tokens."""
        ids: list[int] = self.encoder.encode(string).tolist()
        return ids

    def encode(self, requests: list[Instance]) -> EncodedRequests:
        """Requests for log-probabilities as ids; DataError where a token crosses a boundary and has no bytes of it."""
        if len(requests) != len(self._requests) or not all(map(is_, requests, self._requests)):
            texts = [((request.task_name, request.doc_id), *request.args) for request in requests]
            self._encoded, self._requests = encode_requests(self.encoder, self.max_length, texts), list(requests)
            self.truncated |= self._encoded.truncated
        return self._encoded

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[Answer]:
        """Score continuations after contexts; an empty continuation has log-probability 0."""
        return self._score(self.encode(requests))

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], **kwargs: Any
    ) -> list[Answer]:
        pairs = [Pair(np.array(context), np.array(continuation)) for _, context, continuation in requests]
        return self._score_parts([fit_pair(pair, self.max_length) for pair in pairs])

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Log-probability of whole texts after an end-of-document token."""
        encoded = [self.encoder.encode(request.args[0]) for request in requests]
        parts = [windows(ids, self.eot_token_id, self.max_length) for ids in encoded]
        return [log_probability for log_probability, _ in self._score_parts(parts)]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Greedy texts after the prompts, up to the first of their stop strings."""
        asked = [
            GenerationRequest(text, tuple(how["until"]), int(how["max_gen_toks"]))
            for text, how in (request.args for request in requests)
        ]
        written = Generator(self.scorer, self.encoder).write(asked, counter(self.progress, len(asked)))
        for request, answer in zip(requests, written, strict=True):
            if answer.truncated:
                self.truncated.add((str(request.task_name), int(request.doc_id)))
        return [answer.text for answer in written]

    def _score_parts(self, requests: Sequence[Sequence[Pair]]) -> list[Answer]:
        """Sums over the windows of each request."""
        encoded = EncodedRequests(len(requests))
        for owner, parts in enumerate(requests):
            encoded.add(owner, parts)
        return self._score(encoded)

    def _score(self, encoded: EncodedRequests) -> list[Answer]:
        progress = counter(self.progress, len(encoded.pairs), encoded.number)
        sums, greedy, omitted = encoded.score(self.scorer, progress)
        self.omitted = max(self.omitted, omitted)
        return list(zip(sums.tolist(), greedy.tolist(), strict=True))


class _Task(ConfigurableTask):  # type: ignore[misc]
    """A task whose requests are built once, however many checkpoints answer them."""

    _instances: list[Instance] | None = None

    def build_all_requests(self, **options: Any) -> None:
        """Build the requests, or forget the last answers to them."""
        if self._instances is None:
            super().build_all_requests(**options)
        for request in self.instances:
            request.resps, request.filtered_resps = [], {}


def load_task(directory: Path, name: str, shots: int) -> ConfigurableTask:
    """The lm-eval task written by `write_task` with that many examples in the prompt, named `<name>_<shots>shot`.

    Items are handed over in memory: lm-eval's own loading would copy them into a cache in the home directory.
    """
    config = read_config(directory, name)
    files: dict[str, str] = config.pop("dataset_kwargs")["data_files"]
    splits = {split: _dataset(directory / file) for split, file in files.items()}
    del config["dataset_path"]
    config |= {"task": task_name(name, shots), "num_fewshot": shots, "custom_dataset": lambda **_: splits}
    return _Task(config=config)


def task_name(name: str, shots: int) -> str:
    """Name of a task with that many examples in the prompt."""
    return f"{name}_{shots}shot"


def build_requests(tasks: Sequence[ConfigurableTask], fewshot_seed: int) -> list[Instance]:
    """The requests for log-probabilities of every task, in order; built once, with examples drawn by the seed."""
    for task in tasks:
        task.set_fewshot_seed(fewshot_seed)
        task.build_all_requests()
    requests = [request for task in tasks for request in task.instances]
    return [request for request in requests if request.request_type == "loglikelihood"]


def run_tasks(model: HarnessModel, tasks: Sequence[ConfigurableTask]) -> dict[str, list[Any]]:
    """lm-eval's samples (one a scored item, in order) of each task by name, of requests that are built.

    No cache of lm-eval is used: what it keeps of responses does not know which model gave them.
    """
    loaded = {"tasks": {task.config.task: task for task in tasks}, "groups": {}}
    results = evaluate(model, loaded, cache_requests=False, bootstrap_iters=0, log_samples=True)
    samples: dict[str, list[Any]] = results["samples"]
    return samples


def _dataset(path: Path) -> datasets.Dataset:
    text = datasets.Value("string")
    kinds = {"choices": datasets.List(text), "contexts": datasets.List(text), "gold": datasets.Value("int64")}
    kinds["answers"] = datasets.List(datasets.List(text))
    records = read_records(path)
    features = {name: kinds.get(name, text) for name in (records[0] if records else ())}
    return datasets.Dataset.from_list(records, datasets.Features(features))
