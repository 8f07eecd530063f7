"""What the name of a data set means: a directory on this machine, or a repository of the hub."""

from pathlib import Path

from paribus.config.groups.corpus import HuggingFaceCorpus
from paribus.errors import ConfigurationError, DataError


def local_directory(name: str) -> Path | None:
    """The directory that `name` is, None for a hub name; DataError for a path where there is none."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        raise DataError(f"corpus.name={name}: a file, not a data set directory; for files use corpus=files")
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise DataError(f"corpus.name={name}: no such directory (looked for {path.absolute()})")
    return None


def require_revision(config: HuggingFaceCorpus) -> str:
    """The commit of a hub data set; ConfigurationError where none is given, since a hub data set changes."""
    if config.revision is None:
        raise ConfigurationError(
            f"corpus.revision: required, because {config.name!r} is no directory here but a data set of the hub, which "
            f"can change; give the commit shown under https://huggingface.co/datasets/{config.name}/commits/main"
        )
    return config.revision


def data_files(directory: Path) -> list[Path]:
    """Every file below a data set directory, sorted by path; DataError where there is none."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and not _hidden(path, directory))
    if not files:
        raise DataError(f"corpus.name={directory}: the directory has no files")
    return files


def _hidden(path: Path, directory: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(directory).parts)
