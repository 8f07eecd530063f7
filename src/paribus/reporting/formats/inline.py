"""A picture as a part of the page, so that its lines can be named under the pointer and marked with their row."""

import html
import re

from paribus.reporting.plots.picture import ON_A_DARK_PAGE

_HEAD = re.compile(r"<svg[^>]*>")
_APART = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.DOTALL)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
_NAMED, _NAMING = re.compile(r' id="([^"]*)"'), re.compile(r'(url\(|href=")#([^")]+)')


def inline(svg: bytes, name: str, alternative: str) -> str:
    """The SVG element, in colours that follow the theme of the page; its identifiers begin with `name`.

    `alternative` is read out in its place.
    """
    text = svg.decode()
    head = _HEAD.search(text)
    if head is None:
        raise ValueError(f"{name}: no SVG")
    body = _APART.sub("", text[head.end() :])
    body = re.sub(r'style="[^"]*"', lambda style: _COLOUR.sub(_themed, style[0]), body)
    used = {found[1] for found in _NAMING.findall(body)}
    body = _NAMED.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", body)
    body = _NAMING.sub(rf"\1#{name}-\2", body)
    box = re.search(r' viewBox="[^"]*"', head[0])
    return f'<svg role="img" aria-label="{html.escape(alternative)}"{box[0] if box else ""}>{body}'


def _themed(colour: re.Match[str]) -> str:
    dark = ON_A_DARK_PAGE.get(colour[0].lower())
    return f"light-dark({colour[0]}, {dark})" if dark else colour[0]
