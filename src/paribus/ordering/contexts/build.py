"""The stage `contexts`: (tokens, order) -> what later stages would have to read the whole encoded corpus for.

Contexts are measured a part at a time; finished parts stay in the stage's scratch directory until the stage is done, so
a killed stage goes on where it stood. Memory is O(documents), and a worker's that of one part.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paribus.config.schema import RunConfig
from paribus.native.loader import compile_kernels
from paribus.native.registry import SPANS, TABLES
from paribus.ordering.arrays import create_array, save_array
from paribus.ordering.contexts.artifact import array_path, write_pieces, write_summary
from paribus.ordering.contexts.measure import ARRAYS, Measured
from paribus.ordering.contexts.opening import pack_corpus
from paribus.ordering.contexts.readings import sampled_bytes
from paribus.ordering.contexts.text import OrderedText
from paribus.ordering.packing.assigned import AssignedContexts
from paribus.ordering.packing.contexts import Contexts
from paribus.stage import JSON, StageContext
from paribus.store import files

TOKENS_A_PART = 2**24
"""Tokens of the contexts of one part; it decides what is repeated after a kill, never what is written."""
MOST_CONTEXTS_A_PART = 2**17

Part = tuple[int, int]
"""The first context of a part, and the one after its last."""


def build(context: StageContext) -> dict[str, JSON]:
    """Measure all contexts. Raises DataError for a corpus smaller than one context, or without text."""
    compile_kernels(SPANS | TABLES, context.report)
    parts = context.work / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    measure = MeasurePart(context.config, context.inputs, parts)
    contexts, text = measure.contexts, measure.text
    kept = _put_together(measure, context)
    sizes = {
        "contexts": contexts.count,
        "left_out_tokens": contexts.left_out_tokens,
        "context_length": contexts.context_length,
        "ordered_bytes": text.bytes,
        "corpus_bytes": int(text.corpus_begins[-1]),
    }
    write_summary(context.output, **sizes)
    if isinstance(contexts, AssignedContexts):
        write_pieces(context.output, contexts.all_pieces)
    return {**sizes, "targets": int(kept["targets"].sum()), "text_bytes": int(kept["text_bytes"].sum())}


class MeasurePart:
    """Measures parts of the contexts and leaves each in a file below `directory`; several threads may call it at once.

    A process that it is sent to opens the artefacts for itself, as they are too large to be sent.
    """

    def __init__(self, config: RunConfig, inputs: Mapping[str, Path], directory: Path) -> None:
        self._given = (config, dict(inputs), directory)
        opened = pack_corpus(config, inputs)
        corpus, tokenizer = opened.corpus, opened.corpus.tokenizer
        self.contexts: Contexts = opened.contexts
        self.text = OrderedText(self.contexts.documents, corpus.source_bytes, tokenizer.token_byte_lengths())
        self._lossy = tokenizer.settings.lossy
        self._points = sampled_bytes(int(self.text.corpus_begins[-1]))

    def __call__(self, part: Part) -> Path:
        """The file of one part, written unless it is there."""
        start, stop = part
        # The range, since what parts of another size left behind must not be taken for this one.
        target = self._given[2] / f"{start:012d}-{stop:012d}.npz"
        if not target.exists():
            found = Measured.of(self.contexts, self.text, self._lossy, self._points, start, stop)
            with files.replacing(target) as aside, aside.open("wb") as file:
                np.savez(file, **vars(found))
        return target

    def __getstate__(self) -> Any:
        return self._given

    def __setstate__(self, given: Any) -> None:
        self.__init__(*given)  # type: ignore[misc]


def _put_together(measure: MeasurePart, context: StageContext) -> dict[str, Any]:
    """Write the arrays of all parts as one each, and return those with an entry a context."""
    count = measure.contexts.count
    names = [name for name in ARRAYS if name != "sampled"]
    arrays = {name: create_array(array_path(context.output, name), "<i8", (count,)) for name in names}
    sampled = [np.zeros((0, 2), dtype="<i8")]
    context.report.progress(0, count, unit="contexts", doing="measuring contexts")
    parts = list(_parts(measure.contexts))
    for (start, stop), file in zip(parts, context.engine.map(measure, parts, releases_gil=True), strict=True):
        with np.load(file, allow_pickle=False) as found:
            for name, array in arrays.items():
                array[start:stop] = found[name]
            sampled.append(found["sampled"])
        context.report.progress(stop, count, unit="contexts", doing="measuring contexts")
    save_array(array_path(context.output, "sampled"), np.concatenate(sampled))
    return arrays


def _parts(contexts: Contexts) -> Iterator[Part]:
    size = max(1, min(MOST_CONTEXTS_A_PART, TOKENS_A_PART // contexts.context_length))
    for start in range(0, contexts.count, size):
        yield start, min(start + size, contexts.count)
