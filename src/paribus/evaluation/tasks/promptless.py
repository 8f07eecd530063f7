"""What is scored without a prompt, as files of the stage `tasks`: sets of texts, pairs to translate, segmented text."""

from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.measures.segmentation import read_segmented
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.texts import read_texts, text_file
from paribus.evaluation.suites.translations import TRANSLATIONS, read_translations
from paribus.evaluation.tasks.heldout import sample_documents, write_heldout
from paribus.evaluation.tasks.heldout_pairs import write_pairs
from paribus.evaluation.text.concatenated import random_order, write_order
from paribus.stage import JSON, Reporter


def texts_path(tasks: Path, name: str) -> Path:
    """File of the artefact `tasks` that holds a set of texts, as `read_heldout` reads it."""
    return tasks / f"{name}.texts.jsonl"


def order_path(tasks: Path, name: str) -> Path:
    """File of the artefact `tasks` that has the order in which the texts of a set stand end to end."""
    return tasks / f"{name}.order.json"


def pairs_path(tasks: Path, name: str) -> Path:
    """File of the artefact `tasks` that holds the pairs of a task, as `read_pairs` reads it."""
    return tasks / f"{name}.pairs.jsonl"


def segmented_path(tasks: Path, name: str) -> Path:
    """File of the artefact `tasks` that holds the sentences of a task, as `read_segmented` reads it."""
    return tasks / f"{name}.seg.txt"


def write_promptless(config: EvaluationConfig, output: Path) -> dict[str, JSON]:
    """The files of the tasks without a prompt, cut to `evaluation.limit`; the number of items of each task.

    DataError for missing and malformed files.
    """
    counts: dict[str, JSON] = {}
    for name in config.tasks:
        if name in TRANSLATIONS:
            chosen = TRANSLATIONS[name]
            pairs = read_translations(chosen.file.find(config.data), chosen)[: config.limit]
            write_pairs(pairs_path(output, name), pairs)
            counts[name] = {"items": len(pairs)}
        elif name in SEGMENTATIONS:
            sentences = read_segmented(SEGMENTATIONS[name].find(config.data))[: config.limit]
            lines = "".join(" ".join(words) + "\n" for words in sentences)
            segmented_path(output, name).write_text(lines, encoding="utf-8")
            counts[name] = {"items": len(sentences)}
    return counts


def write_texts(config: EvaluationConfig, output: Path, report: Reporter) -> dict[str, JSON]:
    """The scored documents of each set of texts.

    Returns documents and bytes of each. DataError for missing and malformed files.
    """
    found: dict[str, JSON] = {}
    for number, name in enumerate(config.texts):
        report.progress(number, len(config.texts), unit="sets", doing=f"reading the texts of {name}")
        documents = sample_documents(read_texts(text_file(name).find(config.data)), config)
        write_heldout(texts_path(output, name), documents)
        if config.concatenated:
            write_order(order_path(output, name), random_order(len(documents)))
        found[name] = {"documents": len(documents), "bytes": sum(len(text.encode()) for _, text in documents)}
    return found
