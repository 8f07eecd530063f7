"""What models wrote, where that is on record: translations, and answers after fine-tuning."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.errors import DataError
from paribus.reporting.table.frame import RunRecord

Written = Mapping[tuple[int, str], str]
"""By step of the checkpoint, and item."""
_TRANSLATIONS, _PREDICTIONS = "translations.parquet", "predictions.parquet"


def written_by(run: RunRecord, task: str) -> dict[tuple[int, str], str]:
    """What the models of a run wrote in a task; nothing of a task in which that is not on record.

    DataError for a file that cannot be read.
    """
    found: dict[tuple[int, str], str] = {}
    if run.scores is not None:
        found |= _read(run.scores / _TRANSLATIONS, task, "document", "translation")
    if run.finetuned is not None:
        found |= _read(run.finetuned / _PREDICTIONS, task, "item", "prediction")
    return found


def _read(path: Path, task: str, item: str, text: str) -> dict[tuple[int, str], str]:
    if not path.is_file():
        return {}
    try:
        table = pq.read_table(path, columns=["checkpoint", item, text], filters=[("task", "=", task)])
    except (pa.ArrowException, KeyError) as error:
        raise DataError(f"{path} is no readable table of what models wrote ({error}); score the run again") from error
    columns = (table[name].to_pylist() for name in ("checkpoint", item, text))
    return {(step, name): said for step, name, said in zip(*columns, strict=True)}
