"""A picture as a part of the page, so that its lines can be named under the pointer and marked with their row."""

import html
import re

from paribus.reporting.plots.picture import ON_A_DARK_PAGE

_HEAD = re.compile(r"<svg[^>]*>")
_APART = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.DOTALL)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
_TAG, _ATTRIBUTE = re.compile(r"<\w[^>]*>"), re.compile(r' ([\w:-]+)="([^"]*)"')
_NAMING = re.compile(r'(url\(|href=")#([^")]+)')


def inline(svg: bytes, name: str, alternative: str) -> str:
    """The SVG element, in colours that follow the theme of the page; its identifiers begin with `name`.

    `alternative` is read out in its place.
    """
    text = svg.decode()
    head = _HEAD.search(text)
    if head is None:
        raise ValueError(f"{name}: no SVG")
    body = _APART.sub("", text[head.end() :])
    used = {found[1] for tag in _TAG.findall(body) for found in _NAMING.findall(tag)}

    def changed(attribute: re.Match[str]) -> str:
        whole, kind, value = attribute[0], attribute[1], attribute[2]
        if kind == "id":
            return f' id="{name}-{value}"' if value in used else ""
        if kind == "fill" and _COLOUR.fullmatch(value):  # of a hatched area, which has no style
            return f' style="fill: {themed(value)}"'
        return _NAMING.sub(rf"\1#{name}-\2", _COLOUR.sub(_as_themed, whole) if kind == "style" else whole)

    body = _TAG.sub(lambda tag: _ATTRIBUTE.sub(changed, tag[0]), body)
    box = re.search(r' viewBox="[^"]*"', head[0])
    return f'<svg role="img" aria-label="{html.escape(alternative)}"{box[0] if box else ""}>{body}'


def themed(colour: str) -> str:
    """A colour of pictures as CSS that follows the theme of the page."""
    dark = ON_A_DARK_PAGE.get(colour.lower())
    return f"light-dark({colour}, {dark})" if dark else colour


def _as_themed(colour: re.Match[str]) -> str:
    return themed(colour[0])
