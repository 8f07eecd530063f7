"""Score checkpoints on tasks and held-out text. Imports lm_eval and torch: import this module late."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import EncoderDecoderModel
from paribus.corpus.artifact import CorpusArtifact
from paribus.evaluation.measures.segmentation import read_segmented
from paribus.evaluation.models.averages import averaged
from paribus.evaluation.models.checkpoints import last_checkpoints, load_checkpoint_model
from paribus.evaluation.models.embeddings import measure_embeddings
from paribus.evaluation.models.harness import HarnessModel, build_requests, load_task, run_tasks, task_name
from paribus.evaluation.models.scoring import Scorer
from paribus.evaluation.models.translated import Translated, translated_sets
from paribus.evaluation.models.translation import Translator
from paribus.evaluation.prompts.requests import EncodedRequests, Item
from paribus.evaluation.results import (
    ResultRow,
    item_rows,
    means,
    write_heldout_table,
    write_items_table,
    write_translations,
)
from paribus.evaluation.suites.registry import prompted
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.texts import HELDOUT_CONCATENATED
from paribus.evaluation.tasks.files import read_config
from paribus.evaluation.tasks.heldout import HELDOUT, read_heldout
from paribus.evaluation.tasks.heldout_pairs import TextPair, read_pairs
from paribus.evaluation.tasks.promptless import segmented_path, texts_path
from paribus.evaluation.tasks.segmentation_rows import segmentation_rows
from paribus.evaluation.text.bits_per_byte import DocumentBits, encode_documents
from paribus.evaluation.text.changed import changed_texts
from paribus.evaluation.text.concatenated import ORDER, encode_stream, read_order
from paribus.evaluation.text.target_bits import TargetScorer
from paribus.evaluation.text.text_sets import TextSet, clean_set, load_text_sets, write_text_sets
from paribus.evaluation.tokenizer import evaluation_tokenizer
from paribus.stage import JSON, Reporter, StageContext
from paribus.store.files import write_json
from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import count_statistics, count_tokens
from paribus.training.distributed import ALONE, Host

BITS_PER_BYTE = "eval/bits_per_byte"
TEXT = "text/"
"""Prefix of what the tokenizer does with the held-out text, whatever the checkpoint."""
TEXT_NUMBERS = (
    "bytes_per_token", "tokens_per_word", "mean_token_length", "entropy", "redundancy", "renyi_efficiency",
    "used_tokens", "unused_tokens", "scaffold_share",
)  # fmt: skip


@dataclass
class Scored:
    """What the checkpoints of one run have given so far."""

    rows: list[ResultRow] = field(default_factory=list)
    heldout: dict[int, DocumentBits] = field(default_factory=dict)
    texts: list[TextSet] = field(default_factory=list)
    requests: EncodedRequests = field(default_factory=lambda: EncodedRequests(0))
    """Of the tasks that ask for log-probabilities; the same at every checkpoint."""
    truncated: set[Item] = field(default_factory=set)
    """Items whose prompt lost its beginning."""
    names: dict[Item, str] = field(default_factory=dict)
    """Of items, by their task and number."""
    translated: Translated = field(default_factory=lambda: Translated({}))
    cut_sources: int | None = None
    """Held-out pairs whose source lost its end; None where no pairs are scored."""
    omitted: float = 0.0
    """Largest share left out of a sum at a boundary (`paribus.evaluation.prompts.boundary`)."""


def score_checkpoints(context: StageContext, host: Host = ALONE) -> dict[str, JSON]:
    """The stage `evaluation`: `items.parquet`, `heldout.parquet`, `statistics.json`, and `texts.parquet` and
    `translations.parquet` where there are such. All processes of `host` score; the main one writes.

    Returns the mean of each measure over items and checkpoints. Raises ConfigurationError where the last
    shares of the training that are scored or averaged end at fewer steps, NumericalError where a model's output is
    not a number.
    """
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    checkpoints = _models(context, host)
    heldout = _Heldout(context.inputs["tasks"] / HELDOUT, pairs=isinstance(context.config.model, EncoderDecoderModel))
    tokenizer = evaluation_tokenizer(next(iter(checkpoints.values())) / "tokenizer")
    scored = Scored()
    for rows in _segmentations(context.config.evaluation.tasks, context.inputs["tasks"], tokenizer, list(checkpoints)):
        _keep(context.report, rows, scored)
    if heldout.pairs is None:
        _score_texts(context, host, tokenizer, checkpoints, heldout, scored)
    else:
        _score_pairs(context, host, tokenizer, checkpoints, heldout.pairs, scored)
    return _write(context, tokenizer, checkpoints, heldout, scored) if host.main else {}


def _models(context: StageContext, host: Host) -> dict[int, Path]:
    """Step -> directory of each model that is scored, ascending: a checkpoint, or the mean of several up to it."""
    evaluation, training = context.config.evaluation, context.inputs["training"]
    number, asked = evaluation.checkpoints_read, evaluation.checkpoints_path
    found = last_checkpoints(training, context.config.training, number, asked)
    return averaged(found, evaluation.average_checkpoints, context.work / "averaged", host)


def _write(
    context: StageContext, tokenizer: Tokenizer, checkpoints: dict[int, Path], heldout: "_Heldout", scored: Scored
) -> dict[str, JSON]:
    clean = clean_set(
        CorpusArtifact(context.inputs["corpus"]),
        heldout.documents,
        scored.heldout,
        context.config.evaluation.clean_overlap,
    )
    scored.texts += clean
    for step, bits in scored.heldout.items():
        context.report.metric(BITS_PER_BYTE, bits.bits_per_byte, step=step)
        for found in clean:
            _tell(context.report, found.metrics(step), step)
    write_items_table(context.output / "items.parquet", scored.rows)
    write_heldout_table(context.output / "heldout.parquet", heldout.documents, scored.heldout)
    if scored.translated.texts:
        write_translations(context.output / "translations.parquet", scored.translated.texts)
    if scored.texts:
        write_text_sets(context.output / "texts.parquet", scored.texts)
    counts, last = count_tokens(tokenizer, heldout.texts), max(checkpoints)
    statistics = count_statistics(tokenizer, counts)
    for name in TEXT_NUMBERS:
        context.report.metric(TEXT + name, float(getattr(statistics, name)), step=last)
    about: dict[str, JSON] = {"beginning": _beginning(tokenizer), "omitted_at_boundaries": scored.omitted}
    about["changed_documents"] = changed_texts(tokenizer, _texts(context, heldout))
    about |= {**scored.translated.signatures, "texts": {found.name: found.about() for found in scored.texts}}
    about |= {} if scored.cut_sources is None else {"cut_sources": scored.cut_sources}
    about["embeddings"] = measure_embeddings(context, checkpoints[last], last, tokenizer, counts.ids)
    content = {
        "heldout": asdict(statistics),
        "tasks": _tasks(context.config.evaluation, context.inputs["tasks"], scored),
        **about,
    }
    write_json(context.output / "statistics.json", content)
    return _result(scored, list(checkpoints))


def _texts(context: StageContext, heldout: "_Heldout") -> Iterator[str]:
    """All that bits are of: held-out documents, of pairs the targets, and documents of named sets."""
    yield from heldout.texts if heldout.pairs is None else (pair.target for pair in heldout.pairs)
    for name in context.config.evaluation.texts:
        yield from (text for _, text in read_heldout(texts_path(context.inputs["tasks"], name)))


def _score_texts(  # noqa: PLR0917 (what is scored, by what, and where it goes)
    context: StageContext,
    host: Host,
    tokenizer: Tokenizer,
    checkpoints: dict[int, Path],
    heldout: "_Heldout",
    scored: Scored,
) -> None:
    """Tasks and held-out text; requests are built, and texts encoded, once for all checkpoints."""
    config = context.config.evaluation
    keys = [(name, shots) for name in prompted(config.tasks) for shots in config.task_shots(name)]
    tasks = {key: load_task(context.inputs["tasks"], *key) for key in keys}
    model: HarnessModel | None = None
    for step, path, progress in _steps(context.report, checkpoints):
        scorer = Scorer(load_checkpoint_model(path, config.device, config.precision), config.batch_tokens, host)
        if model is None:
            model = HarnessModel(scorer, tokenizer)
            documents = encode_documents(tokenizer, heldout.texts, model.max_length)
            scored.texts = load_text_sets(context.inputs["tasks"], config, tokenizer, model.max_length)
            if config.concatenated:
                order = read_order(context.inputs["tasks"] / ORDER)
                stream = encode_stream(tokenizer, heldout.texts, order, model.max_length)
                scored.texts.append(TextSet(HELDOUT_CONCATENATED, heldout.documents, stream))
            scored.requests = model.encode(build_requests(list(tasks.values()), config.fewshot_seed))
        if tasks:
            model.scorer, model.progress = scorer, progress.requests
            samples = run_tasks(model, list(tasks.values()))
            rows = [row for key in keys for row in item_rows(step, *key, samples[task_name(*key)])]
            _keep(context.report, rows, scored)
            scored.names |= _names(samples)
            scored.omitted, scored.truncated = model.omitted, model.truncated
        scored.heldout[step] = documents.bits(scorer, progress.text)
        for found in scored.texts:
            _tell(context.report, found.score(step, scorer, progress.text_of(found.name)), step)


def _tell(report: Reporter, metrics: Mapping[str, float], step: int) -> None:
    for name, value in metrics.items():
        report.metric(name, value, step=step)


def _names(samples: dict[str, list[Any]]) -> dict[Item, str]:
    return {
        (name, int(sample["doc_id"])): str(sample["doc"]["id"]) for name, found in samples.items() for sample in found
    }


def _keep(report: Reporter, rows: list[ResultRow], scored: Scored) -> None:
    """Rows of one checkpoint, whose means are metrics of the run."""
    for key, value in means(rows).items():
        report.metric(measure(*key), value, step=rows[0].checkpoint)
    scored.rows += rows


def _score_pairs(  # noqa: PLR0917 (as above)
    context: StageContext,
    host: Host,
    tokenizer: Tokenizer,
    checkpoints: dict[int, Path],
    pairs: list[TextPair],
    scored: Scored,
) -> None:
    """Held-out targets and translations, the tasks of an encoder-decoder."""
    config, length = context.config.evaluation, context.config.model.context_length
    scored.translated = translated_sets(config, context.inputs["tasks"], pairs)
    scored.cut_sources = sum(len(tokenizer.encode(pair.source)) > length - 1 for pair in pairs)
    for step, path, progress in _steps(context.report, checkpoints):
        model = load_checkpoint_model(path, config.device, config.precision)
        targets = TargetScorer(model, tokenizer, length, config.batch_tokens, host)
        scored.heldout[step] = targets.bits(pairs, progress.text)
        how = (config.batch_tokens, config.beams, config.length_penalty, host)
        translator = Translator(model, tokenizer, length, *how)
        _keep(context.report, scored.translated.add(step, translator, progress.translations), scored)


def _segmentations(
    names: Sequence[str], tasks: Path, tokenizer: Tokenizer, steps: Sequence[int]
) -> Iterator[list[ResultRow]]:
    """What segmented corpora say of the tokenizer, at every checkpoint the same."""
    for name in names:
        if name in SEGMENTATIONS:
            gold = read_segmented(segmented_path(tasks, name))
            yield from (segmentation_rows(name, tokenizer, gold, step) for step in steps)


def _steps(report: Reporter, checkpoints: dict[int, Path]) -> Iterator[tuple[int, Path, "_Progress"]]:
    for number, (step, path) in enumerate(checkpoints.items(), start=1):
        yield step, path, _Progress(report, f"step {step} ({number} of {len(checkpoints)})")


class _Heldout:
    """The sample of held-out documents or pairs."""

    def __init__(self, path: Path, *, pairs: bool) -> None:
        self.pairs: list[TextPair] | None = None
        if pairs:
            self.pairs = read_pairs(path)
            self.documents = [pair.id for pair in self.pairs]
            self.texts = [text for pair in self.pairs for text in (pair.source, pair.target)]
        else:
            self.documents, self.texts = (list(column) for column in zip(*read_heldout(path), strict=True))


def measure(task: str, shots: int, metric: str) -> str:
    """Name of a metric of the run."""
    return f"eval/{task}/{shots}shot/{metric}"


class _Progress:
    """Passes on what is done of a checkpoint."""

    def __init__(self, report: Reporter, doing: str) -> None:
        self._report, self._doing = report, doing

    def requests(self, done: int, total: int) -> None:
        self._report.progress(done, total, unit="requests", doing=f"scoring tasks, {self._doing}")

    def translations(self, done: int, total: int) -> None:
        self._report.progress(done, total, unit="pairs", doing=f"translating, {self._doing}")

    def text(self, done: int, total: int) -> None:
        self.text_of("held-out text")(done, total)

    def text_of(self, name: str) -> Callable[[int, int], None]:
        return lambda done, total: self._report.progress(
            done, total, unit="bytes", doing=f"scoring {name}, {self._doing}"
        )


def _beginning(tokenizer: Tokenizer) -> JSON:
    """What stands before the first token of a text, in lm-eval's words.

    Without `add_bos_token` it stands before documents, and before a context that has no token of its own; any other
    context begins with its own tokens.
    """
    return {"token": tokenizer.settings.special_tokens[0], "id": tokenizer.eos_id, "add_bos_token": False}


def _tasks(config: EvaluationConfig, tasks: Path, scored: Scored) -> dict[str, JSON]:
    """What a reader of the tasks' scores must know."""
    about: dict[str, JSON] = {}
    requests = scored.requests
    for name in prompted(config.tasks):
        metadata = read_config(tasks, name)["metadata"]
        names = {str(number): task_name(name, number) for number in config.task_shots(name)}
        about[name] = {
            "chance": metadata["chance"],
            "items": len({row.item for row in scored.rows if row.task == name}),
            "fewshot_source": metadata["fewshot_source"],
            "truncated_items": {key: _named(task, scored) for key, task in names.items()},
            "crossed_items": {key: _count(task, requests.crossed) for key, task in names.items()},
            "crossed_choices": {key: _count(task, requests.crossed.elements()) for key, task in names.items()},
        }
    return about


def _named(task: str, scored: Scored) -> list[JSON]:
    """The items of a task whose prompt was cut."""
    return [*sorted(scored.names[item] for item in scored.truncated if item[0] == task)]


def _count(task: str, items: Iterable[tuple[str, int]]) -> int:
    return sum(name == task for name, _ in items)


def _result(scored: Scored, steps: list[int]) -> dict[str, JSON]:
    """Means over items and checkpoints; every checkpoint has the same items."""
    values: dict[str, JSON] = {measure(*key): value for key, value in means(scored.rows).items()}
    bits = [result.bits_per_byte for result in scored.heldout.values()]
    values[BITS_PER_BYTE] = sum(bits) / len(bits)
    for found in scored.texts:
        values |= found.means()
    return {"checkpoints": [*steps], "metrics": values}
