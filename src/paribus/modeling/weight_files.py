"""The files that hold the weights of a Hugging Face directory; `paribus plan` uses this, so nothing heavy here."""

from pathlib import Path

from paribus.errors import DataError
from paribus.store.files import read_object

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files, sharded or not. DataError where there are none or one is missing."""
    if (directory / WEIGHTS).is_file():
        return [directory / WEIGHTS]
    if not (directory / INDEX).is_file():
        raise DataError(
            f"{directory}: no {WEIGHTS}; weights of other formats are not read, so save them as safetensors"
        )
    shards = read_object(directory / INDEX).get("weight_map", {})
    files = [directory / name for name in sorted(set(shards.values()))]
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        raise DataError(f"{directory / INDEX} names files that are not there: {', '.join(missing) or 'none at all'}")
    return files
