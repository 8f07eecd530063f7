"""What stages that are not made yet will take, from those of their kind that were timed in this output root.

Stages that read the corpus take time by its bytes, those that read a model by its parameters, and for these the time of
every GPU that one had is counted. What was made in the same way is taken: with the same kinds of groups, or where there
is no such artefact, all of the stage; for scores and fine-tuning only what has the same items and settings.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paribus.modeling.counts import parameter_count
from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.stages import EVALUATION, FINETUNING
from paribus.planning.length import known_vocabulary_size
from paribus.store.record import RECORD

ITEMS_OF = {EVALUATION: "tasks", FINETUNING: "finetuning_data"}
"""Stages that read a model, and their input of items."""
Record = Mapping[str, Any]


@dataclass
class StageTimes:
    """The records of an output root, read once a stage."""

    root: OutputRoot
    _records: dict[str, list[Record]] = field(default_factory=dict, init=False)

    def seconds(self, node: Node) -> float | None:
        """Estimated seconds of making a node, of a device where it reads a model.

        None where nothing like it was timed, or its input is not known yet.
        """
        amount = self._planned_amount(node)
        if amount is None:
            return None
        timed = self._timed(node)
        work = sum(done for _, done in timed)
        return sum(seconds for seconds, _ in timed) / work * amount if work else None

    def _timed(self, node: Node) -> list[tuple[float, float]]:
        """Seconds and amount of what the node is estimated from."""
        way = _way(node.name, _as_record(node))
        alike, others = list[tuple[float, float]](), list[tuple[float, float]]()
        for record in self._of(node.name):
            amount = self._amount(node.name, record)
            if amount is not None:
                same = _way(node.name, record) == way
                devices = float(record.get("gpus", 1)) if node.name in ITEMS_OF else 1.0
                (alike if same else others).append((float(record["seconds"]) * devices, amount))
        return alike or ([] if node.name in ITEMS_OF else others)

    def _planned_amount(self, node: Node) -> float | None:
        if node.name in ITEMS_OF:
            vocabulary = node.inputs["training"].inputs["tokens"].inputs["vocabulary"]
            size = known_vocabulary_size(node.config, vocabulary, self.root)
            return parameter_count(node.config.model, size.value)
        read = self._corpus_bytes(_as_record(node))
        return None if read is None else read * _draws(node.identity)

    def _amount(self, stage: str, record: Record) -> float | None:
        """Bytes of the corpus that an artefact was made of, or parameters of the model."""
        if stage not in ITEMS_OF:
            size = self._own_bytes(record) if stage == "corpus" else self._corpus_bytes(record)
            return None if size is None else size * _draws(record)
        trained = self._find("training", record["inputs"]["training"])
        return None if trained is None else float(trained["result"]["parameters"])

    def _corpus_bytes(self, record: Record) -> float | None:
        """Through inputs, and inputs of inputs, to the corpus."""
        for stage, key in record["inputs"].items():
            found = self._find(stage, key)
            if found is not None:
                size = self._own_bytes(found) if stage == "corpus" else self._corpus_bytes(found)
                if size is not None:
                    return size
        return None

    def _own_bytes(self, record: Record) -> float | None:
        return float(record["result"]["train"]["bytes"]) or None

    def _find(self, stage: str, key: str) -> Record | None:
        artifact = self.root.store.find(stage, key)
        return artifact.record() if artifact else None

    def _of(self, stage: str) -> list[Record]:
        if stage not in self._records:
            self._records[stage] = list(readable_records(self.root, stage))
        return self._records[stage]


def readable_records(root: OutputRoot, stage: str) -> Iterator[Record]:
    """Records of a stage's artefacts that can be read; `paribus doctor` is for the others."""
    for path in sorted((root.store.root / stage).glob(f"*/{RECORD}")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if float(record["seconds"]) > 0 and record["inputs"] is not None and record["identity"] is not None:
                yield record
        except (OSError, ValueError, KeyError, TypeError):
            continue


def _as_record(node: Node) -> Record:
    return {**node.identity, "inputs": {name: other.key for name, other in node.inputs.items()}}


def _draws(record: Record) -> int:
    """How often an artefact reads the text, as BPE-dropout may to draw its tokens anew."""
    return int((record["identity"].get("encoder") or {}).get("draws", 1))


def _way(stage: str, record: Record) -> Any:
    """What two artefacts of a stage must have in common to take time alike."""
    groups = record["identity"]
    if stage in ITEMS_OF:
        settings = {name: value for name, value in groups.items() if name != "seeds"}
        return settings, record["inputs"][ITEMS_OF[stage]]
    return {name: value.get("kind") for name, value in groups.items() if isinstance(value, dict)}
