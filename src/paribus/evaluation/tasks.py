"""Stage `tasks`: (corpus, benchmark files) -> items, and sets of texts, pairs to translate and segmented text.

All but items are scored without a prompt.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.artifact import CorpusArtifact, Document, has_pairs
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.benchmarks import BENCHMARKS, CONTINUATION, prompted
from paribus.evaluation.data_files import (
    SEGMENTATIONS,
    TRANSLATIONS,
    benchmark_items,
    read_texts,
    read_translations,
    text_file,
)
from paribus.evaluation.heldout import (
    HELDOUT,
    PassageSample,
    TextPair,
    continuation_items,
    passage_sample,
    sample_documents,
    sample_pairs,
    write_heldout,
    write_pairs,
)
from paribus.evaluation.items import BenchmarkPrompt, Generation, choice_metrics, write_task
from paribus.evaluation.lm_eval_tasks import find_definition, split_files
from paribus.evaluation.preflight import check_evaluation, require_examples
from paribus.evaluation.segmentation import read_segmented
from paribus.evaluation.text import ORDER_FILE, random_order, related_order, write_order
from paribus.stage import JSON, StageContext, StageListener


def build(context: StageContext) -> dict[str, JSON]:
    """Write the files of every task and set of texts, and `heldout.jsonl` for bits per byte.

    That has (id, text), of pairs (id, source, target). With `evaluation.concatenated`, `heldout.order.json` has the
    order in which the texts are concatenated. Raises DataError for missing or malformed files and too little held-out
    text, ConfigurationError for an unknown task or more examples in the prompt than there are.
    """
    config = context.config.evaluation
    if problems := check_evaluation(config):
        raise ConfigurationError(*problems)
    corpus = CorpusArtifact(context.inputs["corpus"])
    if has_pairs(corpus):
        heldout = _write_pairs(config, corpus, context.output, context.listener)
        return {"tasks": write_promptless(config, context.output), "heldout": heldout}
    passages, documents = _sample_heldout(config, corpus, context.listener)
    counts = {name: _write_task(context, name, passages) for name in prompted(config.tasks)}
    counts |= write_promptless(config, context.output)
    write_heldout(context.output / HELDOUT, documents)
    if config.concatenated:
        write_order(context.output / ORDER_FILE, related_order([text for _, text in documents]))
    size = sum(len(text.encode()) for _, text in documents)
    sets = write_texts(config, context.output, context.listener)
    return {"tasks": counts, "texts": sets, "heldout": {"documents": len(documents), "bytes": size}}


def _write_pairs(config: EvaluationConfig, corpus: CorpusArtifact, output: Path, listener: StageListener) -> JSON:
    documents = _read_heldout(corpus, listener)
    read = (TextPair(document.id, document.text, document.target or "") for document in documents)
    pairs = sample_pairs(read, config.heldout_documents)
    if not pairs:
        raise DataError("the corpus has no held-out pairs: raise corpus.heldout or take a larger corpus")
    write_pairs(output / HELDOUT, pairs)
    return {"documents": len(pairs), "bytes": sum(len(pair.target.encode()) for pair in pairs)}


def _read_heldout(corpus: CorpusArtifact, listener: StageListener) -> Iterator[Document]:
    total, done = corpus.bytes("heldout"), 0
    for document in corpus.documents("heldout"):
        yield document
        done += document.bytes
        listener.progress(done, total, unit="bytes", doing="reading held-out text")


def _sample_heldout(
    config: EvaluationConfig, corpus: CorpusArtifact, listener: StageListener
) -> tuple[PassageSample, list[tuple[str, str]]]:
    passages = passage_sample(config.continuation_items, (config.context_characters, config.continuation_characters))

    def candidates() -> Iterator[tuple[str, str]]:
        for document in _read_heldout(corpus, listener):
            if CONTINUATION in config.tasks:
                passages.add(document.id, document.text)
            yield document.id, document.text

    documents = sample_documents(candidates(), config)
    if not documents:
        raise DataError("the corpus has no held-out text: raise corpus.heldout or take a larger corpus")
    return passages, documents


def _write_task(context: StageContext, name: str, passages: PassageSample) -> JSON:
    config = context.config.evaluation
    generation: Generation | None = None
    changes: Mapping[str, Any] = {}
    if name == CONTINUATION:
        items = continuation_items(passages, config.continuation_items)
        prompt = BenchmarkPrompt("held-out part of the corpus", target_delimiter="")
    elif name in BENCHMARKS:
        benchmark = BENCHMARKS[name]
        items = benchmark_items(config.data, benchmark, max(config.task_shots(name)))
        prompt, generation = benchmark.prompt, benchmark.generation
        changes = {"metric_list": choice_metrics(benchmark.also)} if benchmark.also else {}
    else:
        task = find_definition(config, name)
        if task.left_out:
            left_out = ", ".join(task.left_out)
            context.listener.message(f"{name}: {left_out} of its measures are no means over items and are left out")
        from paribus.evaluation.lm_eval_render import borrowed_items

        shots = max(config.task_shots(name))
        items, prompt, generation, changes = borrowed_items(task, split_files(config, task), shots)
    require_examples(config, name, len(items.fewshot), items.fewshot_source)
    items = replace(items, evaluated=items.evaluated[: config.limit])
    scored = len(items.evaluated)
    if copies := scored - len({item.digest() for item in items.evaluated}):
        context.listener.message(
            f"{name}: {copies:,} of {scored:,} items are copies of others; each is scored and counts as one"
        )
    write_task(context.output, name, items, prompt, generation, changes)
    return {
        "items": len(items.evaluated),
        "fewshot": len(items.fewshot),
        "fewshot_source": items.fewshot_source,
        "written": generation is not None,
    }


TEXTS, ORDER, PAIRS, SEGMENTED = ".texts.jsonl", ".order.json", ".pairs.jsonl", ".seg.txt"
"""Endings of files of the artefact that hold a set of texts (`read_heldout`), the order in which it stands end to end
(`read_order`), pairs (`read_pairs`) and segmented sentences (`read_segmented`)."""


def write_promptless(config: EvaluationConfig, output: Path) -> dict[str, JSON]:
    """Write the files of the tasks without a prompt, cut to `evaluation.limit`; the number of items of each task.

    Raises DataError for missing and malformed files.
    """
    counts: dict[str, JSON] = {}
    for name in config.tasks:
        if name in TRANSLATIONS:
            translation = TRANSLATIONS[name]
            pairs = read_translations(translation.file.find(config.data), translation)[: config.limit]
            write_pairs(output / f"{name}{PAIRS}", pairs)
            counts[name] = {"items": len(pairs)}
        elif name in SEGMENTATIONS:
            sentences = read_segmented(SEGMENTATIONS[name].find(config.data))[: config.limit]
            lines = "".join(" ".join(words) + "\n" for words in sentences)
            (output / f"{name}{SEGMENTED}").write_text(lines, encoding="utf-8")
            counts[name] = {"items": len(sentences)}
    return counts


def write_texts(config: EvaluationConfig, output: Path, listener: StageListener) -> dict[str, JSON]:
    """Write the scored documents of each set of texts; the number of documents and bytes of each.

    Raises DataError for missing and malformed files.
    """
    sizes: dict[str, JSON] = {}
    for number, name in enumerate(config.texts):
        listener.progress(number, len(config.texts), unit="sets", doing=f"reading the texts of {name}")
        documents = sample_documents(read_texts(text_file(name).find(config.data)), config)
        write_heldout(output / f"{name}{TEXTS}", documents)
        if config.concatenated:
            write_order(output / f"{name}{ORDER}", random_order(len(documents)))
        sizes[name] = {"documents": len(documents), "bytes": sum(len(text.encode()) for _, text in documents)}
    return sizes
