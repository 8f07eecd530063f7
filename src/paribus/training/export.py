"""The artefact of a training, from its working directory: models as Hugging Face has them, and records."""

import os
import shutil
from pathlib import Path

import numpy as np

from paribus.modeling.architecture import WEIGHTS
from paribus.modeling.decoder import places
from paribus.ordering.arrays import save_array
from paribus.ordering.ordered_text import READINGS, MeasuredContexts, readings
from paribus.ordering.pairs import PairContexts
from paribus.stage import JSON
from paribus.store.files import METRICS, write_json
from paribus.tokenization import Tokenizer
from paribus.training.data.fingerprint import contexts_digest
from paribus.training.loop import Run
from paribus.training.state.checkpoint import Checkpoint, step_name
from paribus.training.state.file_names import OPTIMIZER, STATE, STATE_DIRECTORY
from paribus.training.state.stored import Part, write_whole


def export(run: Run, tokenizer: Path, output: Path) -> None:
    """Fill the artefact from the working directory: kept checkpoints, the last optimizer state, the records."""
    # Whoever scores a checkpoint in the store gets the ids of paribus, where text is never a special token.
    exported = Tokenizer.load(tokenizer).to_huggingface(split_special_tokens=True)
    for step in sorted(run.checkpoints.kept):
        target = output / step_name(step)
        target.mkdir()
        checkpoint = run.checkpoints.read(step)
        for file in checkpoint.model_files():
            _link_or_copy(file, target / file.name)
        if checkpoint.sharded:
            write_weights(checkpoint, target)
        exported.save_pretrained(target)
        shutil.copytree(tokenizer, target / "tokenizer", dirs_exist_ok=True)
    last = run.checkpoints.read(run.budget.steps)
    state = output / STATE_DIRECTORY
    state.mkdir()
    _link_or_copy(last.path / STATE, state / STATE)
    if last.sharded:
        write_optimizer(last, state)
    else:
        _link_or_copy(last.path / OPTIMIZER, state / OPTIMIZER)
    shutil.copy2(run.metrics.path, output / METRICS)
    write_json(output / "contexts.json", contexts_record(run))


def write_weights(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the rows of a sharded checkpoint as the one file of a Hugging Face directory."""
    stored = checkpoint.weights()
    parts = {}
    for place in places(checkpoint.architecture):
        rows = range(stored.shapes[place.parameter][0])[place.rows]
        parts[place.stored] = Part(place.parameter, (rows.start, rows.stop))
    write_whole(directory / WEIGHTS, stored, parts, {"format": "pt"})


def write_optimizer(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the optimizer's state of a sharded checkpoint as one file."""
    state = checkpoint.optimizer()
    write_whole(directory / OPTIMIZER, state, {name: Part(name, None) for name in state.shapes}, {})


def save_readings(run: Run, measured: MeasuredContexts, output: Path) -> None:
    """Write how often each of a sample of the corpus' bytes was read, in the smallest integers that hold it."""
    batches, steps = run.batches, run.budget.steps
    found = readings(measured.sampled, lambda contexts: batches.times_read(contexts, steps), measured.corpus_bytes)
    save_array(output / READINGS, found.astype(np.min_scalar_type(int(found.max()))))


def pair_numbers(run: Run) -> dict[str, JSON]:
    """What only a training on pairs has."""
    pairs = isinstance(run.batches.contexts, PairContexts)
    return {"source_tokens": run.budget.source_tokens} if pairs else {}


def contexts_record(run: Run) -> dict[str, JSON]:
    """Which contexts were read, and of how many."""
    batches = run.batches
    return pair_numbers(run) | {
        "contexts": batches.contexts_an_epoch,
        "context_length": batches.contexts.context_length,
        "global_batch": batches.global_batch,
        "steps": run.budget.steps,
        "epochs": run.budget.epochs,
        "tokens": run.budget.tokens,
        "tokens_per_epoch": int(run.targets.sum()) // batches.traversal.draws,
        "text_bytes": run.budget.text_bytes,
        "text_bytes_per_epoch": int(run.text_bytes.sum()) // batches.traversal.draws,
        "indices_sha256": contexts_digest(batches, run.budget.steps),
    }


def _link_or_copy(source: Path, target: Path) -> None:
    """A hard link spares a copy of the weights; file systems without links get the copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
