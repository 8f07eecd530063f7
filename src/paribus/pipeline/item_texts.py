"""The texts of what runs were scored on, from their artefacts `tasks` and `finetuning_data`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paribus.evaluation.data_files import HELDOUT_CLEAN, HELDOUT_CONCATENATED, TRANSLATION, concatenated_name
from paribus.evaluation.heldout import HELDOUT
from paribus.evaluation.items import read_records
from paribus.evaluation.scrolls import read_task
from paribus.evaluation.segmentation import read_segmented
from paribus.evaluation.tasks import PAIRS, SEGMENTED, TEXTS
from paribus.pipeline.prepared import PreparedRun
from paribus.pipeline.root import OutputRoot
from paribus.reporting.items import HELDOUT as HELDOUT_DOCUMENTS
from paribus.reporting.items import ItemText, Texts

TASKS, FINETUNING_DATA = "tasks", "finetuning_data"
_HELDOUT = (HELDOUT_DOCUMENTS, TRANSLATION, HELDOUT_CLEAN, HELDOUT_CONCATENATED)
"""Tasks and sets of documents that are held-out text of the corpus."""


def stored_texts(runs: Sequence[PreparedRun], root: OutputRoot) -> Callable[[str], Texts]:
    """Texts by the name of a task or set of documents, as far as the store still has them."""
    tasks, tuned = (_artifacts(stage, runs, root) for stage in (TASKS, FINETUNING_DATA))

    def texts(name: str) -> Texts:
        by_item: dict[str, ItemText] = {}
        for directory in tuned:
            by_item |= finetuned_texts(directory / name) if (directory / name).is_dir() else {}
        for directory in tasks:
            by_item |= scored_texts(directory, name)
        return by_item

    return texts


def _artifacts(stage: str, runs: Sequence[PreparedRun], root: OutputRoot) -> list[Path]:
    keys = dict.fromkeys(run.nodes[stage].key for run in runs if stage in run.nodes)
    artifacts = (root.store.find(stage, key) for key in keys)
    return [artifact.path for artifact in artifacts if artifact is not None]


def scored_texts(tasks: Path, name: str) -> dict[str, ItemText]:
    """Texts that an artefact `tasks` has of a task or set of documents."""
    if name in _HELDOUT:
        return dict(map(_document, _records(tasks / HELDOUT)))
    named = (path.name.removesuffix(TEXTS) for path in sorted(tasks.glob(f"*{TEXTS}")))
    sets = (other for other in named if name in (other, concatenated_name(other)))
    if (text_set := next(sets, None)) is not None:
        return dict(map(_document, _records(tasks / f"{text_set}{TEXTS}")))
    if (path := tasks / f"{name}{SEGMENTED}").is_file():
        sentences = read_segmented(path)
        return {
            f"test/{number}": ItemText(accepted=(" ".join(words),)) for number, words in enumerate(sentences, start=1)
        }
    pairs = {str(record["id"]): _pair(record) for record in _records(tasks / f"{name}{PAIRS}")}
    return pairs or {str(record["id"]): _item(record) for record in _records(tasks / f"{name}.jsonl")}


def _records(path: Path) -> list[dict[str, Any]]:
    return read_records(path) if path.is_file() else []


def _document(record: dict[str, Any]) -> tuple[str, ItemText]:
    return str(record["id"]), ItemText(record["text"]) if "text" in record else _pair(record)


def _pair(record: dict[str, Any]) -> ItemText:
    return ItemText(record["source"], accepted=(record["target"],))


def _item(record: dict[str, Any]) -> ItemText:
    """A line of `<task>.jsonl`, one of the four kinds that `paribus.evaluation.items` writes."""
    if "contexts" in record:
        return ItemText(choices=tuple(record["contexts"]), right=record["gold"], ending=record["ending"])
    if "choices" in record:
        return ItemText(record["query"], tuple(record["choices"]), record["gold"])
    if "target" in record:
        return ItemText(record["query"], accepted=(record["target"],))
    return ItemText(record["query"], accepted=tuple(", ".join(spans) for spans in record["answers"]))


def finetuned_texts(task: Path) -> dict[str, ItemText]:
    """The questions of a task that models were fine-tuned on; of one that asks nothing the document."""
    data = read_task(task)
    return {
        each.id: ItemText(each.question or data.documents[each.document], accepted=each.answers) for each in data.scored
    }
