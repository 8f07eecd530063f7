"""Pictures of a report as they were drawn before: kept with a digest of all that they show and are drawn by."""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from paribus.reporting.plots.picture import Plot, style
from paribus.store import atomic

_CODE = Path(__file__).parent
_PLAIN = frozenset({str, int, float})
"""Of which JSON tells any two apart."""


def digest(*shown: Any) -> str | None:
    """Of values that pictures are drawn of, of the code that draws them, and of matplotlib, its settings and fonts.

    None where a value has a part of which nothing says whether it is the same in another process, or code cannot be
    read, as where an editor keeps a link to nowhere beside it.
    """
    found = hashlib.sha256()
    try:
        drawn_by = (mpl.__version__, _settings(), style(), _code())
        for part in _parts((drawn_by, shown)):
            found.update(b"%d:" % len(part) + part)
    except (TypeError, OSError):
        return None
    return found.hexdigest()


def read(path: Path, expected: str) -> list[Plot] | None:
    """The pictures that were kept with that digest; None where there are none, or the file cannot be read."""
    try:
        kept = json.loads(path.read_bytes())
        if kept["digest"] != expected:
            return None
        return [_plot(picture) for picture in kept["pictures"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(path: Path, expected: str, plots: Sequence[Plot]) -> None:
    """Keep pictures in place of those kept before. Raises OSError."""
    pictures = [
        {name: base64.b64encode(value).decode() if isinstance(value, bytes) else value for name, value in fields}
        for fields in (vars(plot).items() for plot in plots)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, json.dumps({"digest": expected, "pictures": pictures}))


def _plot(fields: Mapping[str, Any]) -> Plot:
    narrow = fields["narrow"]
    return Plot(
        name=fields["name"],
        caption=fields["caption"],
        alternative=fields["alternative"],
        png=base64.b64decode(fields["png"], validate=True),
        svg=base64.b64decode(fields["svg"], validate=True),
        narrow=None if narrow is None else base64.b64decode(narrow, validate=True),
    )


def _settings() -> str:
    """Matplotlib's, without the one that figures are shown by: to look it up imports every toolkit of windows."""
    # Of a copy, since only of the original a look at all of them looks that one up.
    return repr(sorted((name, value) for name, value in mpl.rcParams.copy().items() if name != "backend"))


def _code() -> str:
    found = hashlib.sha256()
    for path in sorted(_CODE.rglob("*.py")):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """What tells a value from any other, in a fixed order; TypeError for a value without one."""
    yield type(value).__name__.encode()
    if isinstance(value, str | bytes | Path):
        yield value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    elif value is None or isinstance(value, bool | int | float | np.generic):
        yield repr(value).encode()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield repr((value.dtype.str, value.shape)).encode()
        yield value.tobytes()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield b"%d" % len(value)
        for item in value.items():
            yield from _parts(item)
    elif (at_once := _at_once(value)) is not None:
        yield at_once
    elif isinstance(value, Set):
        yield b"%d" % len(value)
        yield from sorted(b"".join(b"%d:" % len(part) + part for part in _parts(one)) for one in value)
    elif isinstance(value, Sequence):
        yield b"%d" % len(value)
        for one in value:
            yield from _parts(one)
    else:
        raise TypeError(f"nothing says whether a {type(value).__name__} is the same in another process")


def _at_once(value: Any) -> bytes | None:
    """All of a list of names and numbers, or of a set of numbers; None of anything else.

    Of a thousand runs most of the time would go into the names of items and the ids of tokens, one by one.
    """
    if isinstance(value, list | tuple) and all(type(one) in _PLAIN for one in value):
        return json.dumps(value).encode()
    if isinstance(value, Set) and all(type(one) is int for one in value):
        return json.dumps(sorted(value)).encode()
    return None
