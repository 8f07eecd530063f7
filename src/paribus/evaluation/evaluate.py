"""Scoring of checkpoints on tasks and held-out text: the stage `evaluation`. Imports lm_eval and torch: import it late.

Models and tokenizers of paribus implement lm-eval's interface, and its task files are lm-eval tasks. Segmented corpora
are tasks too: precision, recall and F1 of a tokenizer's tokens as words. None of the three is a mean over sentences, as
their counts are summed before dividing. A sentence has the linearised value (delta method) of each: their mean is the
ratio itself, their spread gives its standard error and paired tests.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import is_
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate
from numpy.typing import NDArray

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import EncoderDecoderModel
from paribus.corpus.artifact import CorpusArtifact
from paribus.evaluation.benchmarks import prompted
from paribus.evaluation.data_files import HELDOUT_CONCATENATED, segmented
from paribus.evaluation.embeddings import measure_embeddings
from paribus.evaluation.generation import GenerationRequest, Generator
from paribus.evaluation.heldout import HELDOUT, TextPair, read_heldout, read_pairs
from paribus.evaluation.items import read_records, read_task_config, text_digest
from paribus.evaluation.pairs import progress_counter
from paribus.evaluation.prompts import EncodedRequests, ItemKey, encode_requests, evaluation_tokenizer
from paribus.evaluation.rows import (
    ResultRow,
    item_rows,
    means,
    write_heldout_table,
    write_items_table,
    write_texts_table,
    write_translations,
)
from paribus.evaluation.scoring import Scorer, averaged_checkpoints, last_checkpoints, load_checkpoint_model
from paribus.evaluation.segmentation import SegmentedWords, read_segmented, sentence_counts
from paribus.evaluation.tasks import SEGMENTED, TEXTS
from paribus.evaluation.text import ORDER_FILE, DocumentBits, encode_documents, encode_stream, read_order
from paribus.evaluation.text_sets import TextSet, changed_texts, clean_set, load_text_sets
from paribus.evaluation.translation import Translated, Translator, translated_sets
from paribus.modeling.device import resolve_device
from paribus.stage import JSON, OFFLINE, StageContext, StageListener
from paribus.store.files import write_json
from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import count_statistics, count_tokens
from paribus.training.distributed import ALONE, Host, Requests, joined_by_gloo, run_worker

BITS_PER_BYTE = "eval/bits_per_byte"
TEXT_PREFIX = "text/"
"""Prefix of metrics of the tokenizer on the held-out text, whatever the checkpoint."""
TEXT_NUMBERS = (
    "bytes_per_token", "tokens_per_word", "mean_token_length", "entropy", "redundancy", "renyi_efficiency",
    "used_tokens", "unused_tokens", "scaffold_share",
)  # fmt: skip


@dataclass
class Scored:
    """Results of the checkpoints of one run so far."""

    rows: list[ResultRow] = field(default_factory=list)
    heldout: dict[int, DocumentBits] = field(default_factory=dict)
    texts: list[TextSet] = field(default_factory=list)
    requests: EncodedRequests = field(default_factory=lambda: EncodedRequests(0))
    """Requests of the tasks that ask for log-probabilities; the same at every checkpoint."""
    truncated: set[ItemKey] = field(default_factory=set)
    """Items whose prompt lost its beginning."""
    names: dict[ItemKey, str] = field(default_factory=dict)
    """Names of items, by task and number."""
    translated: Translated = field(default_factory=lambda: Translated({}))
    cut_sources: int | None = None
    """Held-out pairs whose source lost its end; None where no pairs are scored."""
    omitted: float = 0.0
    """Largest share left out of a sum at a boundary (`paribus.evaluation.prompts`)."""


def score_checkpoints(context: StageContext, host: Host = ALONE) -> dict[str, JSON]:
    """Build the stage `evaluation`: all processes of `host` score, and the main one writes.

    Written are `items.parquet`, `heldout.parquet`, `statistics.json`, and `texts.parquet` and `translations.parquet`
    where there are any. Returns the mean of each measure over items and checkpoints. Raises ConfigurationError where
    the training has too few steps for the checkpoints that are scored or averaged, NumericalError where a model's
    output is not a number.
    """
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    evaluation, training = context.config.evaluation, context.inputs["training"]
    number, field = evaluation.checkpoints_read, evaluation.checkpoints_path
    checkpoints = last_checkpoints(training, context.config.training, number, field)
    checkpoints = averaged_checkpoints(checkpoints, evaluation.average_checkpoints, context.work / "averaged", host)
    heldout = _Heldout(context.inputs["tasks"] / HELDOUT, pairs=isinstance(context.config.model, EncoderDecoderModel))
    tokenizer = evaluation_tokenizer(next(iter(checkpoints.values())) / "tokenizer")
    scored = Scored()
    for name in segmented(evaluation.tasks):
        gold = read_segmented(context.inputs["tasks"] / f"{name}{SEGMENTED}")
        for step in checkpoints:  # the same at every checkpoint: it is the tokenizer that is scored
            _add_rows(context.listener, segmentation_rows(name, tokenizer, gold, step), scored)
    score = _score_texts if heldout.pairs is None else _score_pairs
    score(context, host, tokenizer, checkpoints, heldout, scored)
    return _write_scores(context, tokenizer, checkpoints, heldout, scored) if host.main else {}


def _write_scores(
    context: StageContext, tokenizer: Tokenizer, checkpoints: dict[int, Path], heldout: "_Heldout", scored: Scored
) -> dict[str, JSON]:
    corpus, config = CorpusArtifact(context.inputs["corpus"]), context.config.evaluation
    clean = clean_set(corpus, heldout.documents, scored.heldout, config.clean_overlap)
    scored.texts += clean
    for step, bits in scored.heldout.items():
        context.listener.metric(BITS_PER_BYTE, bits.bits_per_byte, step=step)
        for texts in clean:
            _report_metrics(context.listener, texts.metrics(step), step)
    write_items_table(context.output / "items.parquet", scored.rows)
    write_heldout_table(context.output / "heldout.parquet", heldout.documents, scored.heldout)
    if scored.translated.texts:
        write_translations(context.output / "translations.parquet", scored.translated.texts)
    if scored.texts:
        sets = {texts.name: (texts.documents, texts.scored) for texts in scored.texts}
        write_texts_table(context.output / "texts.parquet", sets)
    counts, last = count_tokens(tokenizer, heldout.texts), max(checkpoints)
    statistics = count_statistics(tokenizer, counts)
    for name in TEXT_NUMBERS:
        context.listener.metric(TEXT_PREFIX + name, float(getattr(statistics, name)), step=last)
    # Token before the first one of a text, by lm-eval's names. Without `add_bos_token` it stands before documents, and
    # before a context that has no token of its own; any other context begins with its own tokens.
    beginning: JSON = {"token": tokenizer.settings.special_tokens[0], "id": tokenizer.eos_id, "add_bos_token": False}
    content: dict[str, JSON] = {
        "heldout": asdict(statistics),
        "tasks": _task_facts(config, context.inputs["tasks"], scored),
        "beginning": beginning,
        "omitted_at_boundaries": scored.omitted,
        "changed_documents": changed_texts(tokenizer, _heldout_texts(context, heldout)),
        **scored.translated.signatures,
        "texts": {texts.name: texts.about() for texts in scored.texts},
        **({} if scored.cut_sources is None else {"cut_sources": scored.cut_sources}),
        "embeddings": measure_embeddings(context, checkpoints[last], last, tokenizer, counts.ids),
    }
    write_json(context.output / "statistics.json", content)
    # Means over items and checkpoints; every checkpoint has the same items.
    values: dict[str, JSON] = {score_name(*key): value for key, value in means(scored.rows).items()}
    bits_per_byte = [result.bits_per_byte for result in scored.heldout.values()]
    values[BITS_PER_BYTE] = sum(bits_per_byte) / len(bits_per_byte)
    for texts in scored.texts:
        values |= texts.means()
    return {"checkpoints": [*checkpoints], "metrics": values}


def _heldout_texts(context: StageContext, heldout: "_Heldout") -> Iterator[str]:
    """Texts whose bits are measured: held-out documents or targets of pairs, and documents of named sets."""
    yield from heldout.texts if heldout.pairs is None else (pair.target for pair in heldout.pairs)
    for name in context.config.evaluation.texts:
        yield from (text for _, text in read_heldout(context.inputs["tasks"] / f"{name}{TEXTS}"))


def _score_texts(  # noqa: PLR0917 (what is scored, by what, and where it goes)
    context: StageContext, host: Host, tokenizer: Tokenizer, paths: dict[int, Path], heldout: "_Heldout", scored: Scored
) -> None:
    """Score tasks and texts; requests are built, and texts encoded, once for all checkpoints."""
    config = context.config.evaluation
    keys = [(name, shots) for name in prompted(config.tasks) for shots in config.task_shots(name)]
    tasks = {key: load_task(context.inputs["tasks"], *key) for key in keys}
    model: HarnessModel | None = None
    for step, path, progress in _scored_steps(context.listener, paths):
        scorer = Scorer(load_checkpoint_model(path, config.device, config.precision), config.batch_tokens, host)
        if model is None:
            model = HarnessModel(scorer, tokenizer)
            documents = encode_documents(tokenizer, heldout.texts, model.max_length)
            scored.texts = load_text_sets(context.inputs["tasks"], config, tokenizer, model.max_length)
            if config.concatenated:
                order = read_order(context.inputs["tasks"] / ORDER_FILE)
                stream = encode_stream(tokenizer, heldout.texts, order, model.max_length)
                scored.texts.append(TextSet(HELDOUT_CONCATENATED, heldout.documents, stream))
            scored.requests = model.encode(build_requests(list(tasks.values()), config.fewshot_seed))
        if tasks:
            model.scorer, model.progress = scorer, progress("requests", "scoring tasks")
            samples = run_tasks(model, list(tasks.values()))
            rows = [row for key in keys for row in item_rows(step, *key, samples[task_name(*key)])]
            _add_rows(context.listener, rows, scored)
            for name, task_samples in samples.items():
                scored.names |= {(name, int(sample["doc_id"])): str(sample["doc"]["id"]) for sample in task_samples}
            scored.omitted, scored.truncated = model.omitted, model.truncated
        scored.heldout[step] = documents.bits(scorer, progress("bytes", "scoring held-out text"))
        for texts in scored.texts:
            metrics = texts.score(step, scorer, progress("bytes", f"scoring {texts.name}"))
            _report_metrics(context.listener, metrics, step)


def _report_metrics(listener: StageListener, metrics: Mapping[str, float], step: int) -> None:
    for name, value in metrics.items():
        listener.metric(name, value, step=step)


def _add_rows(listener: StageListener, rows: list[ResultRow], scored: Scored) -> None:
    for key, value in means(rows).items():
        listener.metric(score_name(*key), value, step=rows[0].checkpoint)
    scored.rows += rows


def _score_pairs(  # noqa: PLR0917 (as above)
    context: StageContext, host: Host, tokenizer: Tokenizer, paths: dict[int, Path], heldout: "_Heldout", scored: Scored
) -> None:
    config, length, pairs = context.config.evaluation, context.config.model.context_length, heldout.pairs or []
    scored.translated = translated_sets(config, context.inputs["tasks"], pairs)
    scored.cut_sources = sum(len(tokenizer.encode(pair.source)) > length - 1 for pair in pairs)
    for step, path, progress in _scored_steps(context.listener, paths):
        model = load_checkpoint_model(path, config.device, config.precision)
        translator = Translator(
            model, tokenizer, length, config.batch_tokens, config.beams, config.length_penalty, host
        )
        scored.heldout[step] = translator.bits(pairs, progress("bytes", "scoring held-out text"))
        rows = scored.translated.add(step, translator, progress("pairs", "translating"))
        _add_rows(context.listener, rows, scored)


Progress = Callable[[str, str], Callable[[int, int], None]]
"""Function from a unit and an activity to the callback that reports their progress."""


def _scored_steps(listener: StageListener, checkpoints: dict[int, Path]) -> Iterator[tuple[int, Path, Progress]]:
    for number, (step, path) in enumerate(checkpoints.items(), start=1):
        where = f"step {step} ({number} of {len(checkpoints)})"

        def progress(unit: str, doing: str, where: str = where) -> Callable[[int, int], None]:
            return lambda done, total: listener.progress(done, total, unit=unit, doing=f"{doing}, {where}")

        yield step, path, progress


class _Heldout:
    def __init__(self, path: Path, *, pairs: bool) -> None:
        self.pairs: list[TextPair] | None = None
        if pairs:
            self.pairs = read_pairs(path)
            self.documents = [pair.id for pair in self.pairs]
            self.texts = [text for pair in self.pairs for text in (pair.source, pair.target)]
        else:
            self.documents, self.texts = (list(column) for column in zip(*read_heldout(path), strict=True))


def score_name(task: str, shots: int, metric: str) -> str:
    """Name of a metric of the run."""
    return f"eval/{task}/{shots}shot/{metric}"


def _task_facts(config: EvaluationConfig, tasks: Path, scored: Scored) -> dict[str, JSON]:
    """Facts that a reader of the tasks' scores must know."""
    tasks_facts: dict[str, JSON] = {}
    items = Counter(task for task, _ in scored.requests.crossed)
    choices = Counter(task for task, _ in scored.requests.crossed.elements())
    for name in prompted(config.tasks):
        metadata = read_task_config(tasks, name)["metadata"]
        names = {str(number): task_name(name, number) for number in config.task_shots(name)}
        tasks_facts[name] = {
            "chance": metadata["chance"],
            "items": len({row.item for row in scored.rows if row.task == name}),
            "fewshot_source": metadata["fewshot_source"],
            "truncated_items": {
                key: [*sorted(scored.names[item] for item in scored.truncated if item[0] == task)]
                for key, task in names.items()
            },
            "crossed_items": {key: items[task] for key, task in names.items()},
            "crossed_choices": {key: choices[task] for key, task in names.items()},
        }
    return tasks_facts


Answer = tuple[float, bool]
"""Natural log-probability of a continuation, and whether greedy decoding gives it."""


class HarnessModel(LM):  # type: ignore[misc]
    """Adapter of a scorer to lm-eval's `LM`; texts become ids by the rule of `paribus.evaluation.pairs`.

    Requests are encoded once: `scorer` may be set to that of another checkpoint, and the same requests scored again.
    """

    def __init__(
        self, scorer: Scorer, tokenizer: Tokenizer, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> None:
        super().__init__()
        self.scorer = scorer
        self.encoder = tokenizer
        self.progress = progress
        """Called with the requests finished and their number."""
        self.truncated: set[ItemKey] = set()
        """Items whose prompt lost its beginning to the context length."""
        self.omitted = 0.0
        """Largest share left out of a sum at a boundary, of all that was scored (`evaluation.prompts`)."""
        self._requests: list[Instance] = []
        self._encoded = EncodedRequests(0)

    @property
    def max_length(self) -> int:
        """Context length of the model in tokens."""
        return self.scorer.context_length

    def encode(self, requests: list[Instance]) -> EncodedRequests:
        """Requests for log-probabilities as ids; raises as `encode_requests` does."""
        if len(requests) != len(self._requests) or not all(map(is_, requests, self._requests)):
            texts = [((request.task_name, request.doc_id), *request.args) for request in requests]
            self._encoded, self._requests = encode_requests(self.encoder, self.max_length, texts), list(requests)
            self.truncated |= self._encoded.truncated
        return self._encoded

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[Answer]:
        """Score continuations after contexts; an empty continuation has log-probability 0."""
        encoded = self.encode(requests)
        progress = progress_counter(self.progress, len(encoded.pairs), encoded.number)
        sums, greedy, omitted = encoded.score(self.scorer, progress)
        self.omitted = max(self.omitted, omitted)
        return list(zip(sums.tolist(), greedy.tolist(), strict=True))

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Not implemented: no task asks for whole texts, which `paribus.evaluation.text` scores."""
        raise NotImplementedError

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Greedy texts after the prompts, up to the first of their stop strings."""
        prompts = [
            GenerationRequest(text, tuple(options["until"]), int(options["max_gen_toks"]))
            for text, options in (request.args for request in requests)
        ]
        written = Generator(self.scorer, self.encoder).write(prompts, progress_counter(self.progress, len(prompts)))
        for request, answer in zip(requests, written, strict=True):
            if answer.truncated:
                self.truncated.add((str(request.task_name), int(request.doc_id)))
        return [answer.text for answer in written]


class _StoredTask(ConfigurableTask):  # type: ignore[misc]
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

    Items are passed in memory: lm-eval's own loading would copy them into a cache in the home directory.
    """
    config = read_task_config(directory, name)
    files: dict[str, str] = config.pop("dataset_kwargs")["data_files"]
    splits = {split: _read_dataset(directory / file) for split, file in files.items()}
    del config["dataset_path"]
    config |= {"task": task_name(name, shots), "num_fewshot": shots, "custom_dataset": lambda **_: splits}
    return _StoredTask(config=config)


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
    """lm-eval's samples (one a scored item, in order) of each task by name, whose requests must be built.

    No cache of lm-eval is used: its responses do not record which model gave them.
    """
    loaded = {"tasks": {task.config.task: task for task in tasks}, "groups": {}}
    results = evaluate(model, loaded, cache_requests=False, bootstrap_iters=0, log_samples=True)
    samples: dict[str, list[Any]] = results["samples"]
    return samples


def _read_dataset(path: Path) -> datasets.Dataset:
    text = datasets.Value("string")
    types = {"choices": datasets.List(text), "contexts": datasets.List(text), "gold": datasets.Value("int64")}
    types["answers"] = datasets.List(datasets.List(text))
    records = read_records(path)
    features = {name: types.get(name, text) for name in (records[0] if records else ())}
    return datasets.Dataset.from_list(records, datasets.Features(features))


WORD_PRECISION, WORD_RECALL, WORD_F1 = "word_precision", "word_recall", "word_f1"


def segmentation_rows(
    task: str, tokenizer: Tokenizer, gold: Sequence[Sequence[str]], checkpoint: int
) -> list[ResultRow]:
    """A row for each measure and sentence; the same at every checkpoint, as no model takes part.

    Raises DataError where the tokens do not spell a sentence.
    """
    values = word_values(sentence_counts(tokenizer, gold))
    digests = [text_digest(" ".join(words)) for words in gold]
    return [
        ResultRow(checkpoint, task, 0, f"test/{number}", digest, metric, float(value))
        for metric, column in values.items()
        for number, (digest, value) in enumerate(zip(digests, column, strict=True), start=1)
    ]


def word_values(counts: Sequence[SegmentedWords]) -> dict[str, NDArray[np.float64]]:
    """(sentences,) linearised values of each measure, in [0, 1] as their mean is, though no single one need be."""
    correct, predicted, gold = np.array(counts, np.float64).T
    return {
        WORD_PRECISION: _linearised_ratio(correct, predicted),
        WORD_RECALL: _linearised_ratio(correct, gold),
        WORD_F1: _linearised_ratio(2 * correct, predicted + gold),
    }


def _linearised_ratio(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> NDArray[np.float64]:
    """(sentences,) R + (n - R d) / mean(d) with R = sum(n) / sum(d)."""
    ratio = numerators.sum() / denominators.sum()
    values: NDArray[np.float64] = ratio + (numerators - ratio * denominators) / denominators.mean()
    return values


def score_worker(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Score as one of `processes` processes, on a GPU of its own; signals end an evaluation at once."""
    evaluation = context.config.evaluation
    if resolve_device(evaluation.device, "evaluation.device").type == "cuda":
        evaluation = replace(evaluation, device=f"cuda:{os.environ['LOCAL_RANK']}")
    with joined_by_gloo() as host:
        return score_checkpoints(replace(context, config=replace(context.config, evaluation=evaluation)), host)


def main() -> int:
    """Score; 0 unless this process failed."""
    os.environ.update(OFFLINE)
    return run_worker(score_worker)
