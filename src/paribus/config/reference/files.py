"""Where the files of the config groups are, and what they are called on the command line."""

from dataclasses import dataclass
from pathlib import Path


def configuration_directory() -> Path:
    """The directory of the config groups: in the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "conf"
    return installed if installed.is_dir() else package.parents[1] / "conf"


@dataclass(frozen=True)
class Option:
    """A file of a group."""

    name: str
    """As on the command line, `lbpe/table_1` of an experiment."""
    path: Path

    @property
    def comment(self) -> list[str]:
        """The lines of comment that it begins with."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        if lines and lines[0].startswith("# @package"):
            lines = lines[1:]
        head = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
        return [line.removeprefix("#").strip() for line in lines[:head]]


def groups() -> list[str]:
    """Groups of options, of which a command line chooses one each."""
    return sorted(path.name for path in configuration_directory().iterdir() if path.is_dir())


def options(group: str) -> list[Option]:
    """The options of a group; files whose names begin with an underscore are parts of others."""
    directory = configuration_directory() / group
    found = sorted(path for path in directory.rglob("*.yaml") if not path.name.startswith("_"))
    return [Option(path.relative_to(directory).with_suffix("").as_posix(), path) for path in found]
