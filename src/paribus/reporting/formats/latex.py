"""The comparison table as LaTeX, in the style of `booktabs`."""

from collections.abc import Sequence
from itertools import groupby

from paribus.reporting.formats.terminal import unrepeated
from paribus.reporting.paper.paper import ABSENT
from paribus.reporting.table.layout import TableEntry, TableLayout

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "—": "---", "∞": r"$\infty$", "−": "$-$", "±": r"$\pm$",
    "†": r"$\dagger$",
}  # fmt: skip
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def latex_table(layouts: Sequence[TableLayout], caption: str, notes: Sequence[str]) -> str:
    """`table` environments to be read with \\input, as wide as a line at most."""
    parts = [r"% \usepackage{booktabs,graphicx}"]
    for layout in layouts:
        alignment = "l" * len(layout.factors) + "r" * len(layout.columns)
        body = [*_head(layout), *_lines(layout), r"\bottomrule", r"\end{tabular}}"]
        title = f"{caption}: {layout.title.lower()}." + (f" {layout.note}." if layout.note else "")
        parts += [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{latex(title)}}}", _FIT]
        parts += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", *body, r"\end{table}"]
    parts += [f"% {' '.join(note.split())}" for note in notes]
    return "\n".join(parts) + "\n"


def latex(text: str) -> str:
    """Text with everything escaped that LaTeX would interpret."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _head(layout: TableLayout) -> list[str]:
    groups = [(name, len(list(columns))) for name, columns in groupby(layout.columns, key=lambda column: column.group)]
    first = [""] * len(layout.factors) + [rf"\multicolumn{{{width}}}{{c}}{{{latex(name)}}}" for name, width in groups]
    rules, start = [], len(layout.factors) + 1
    for _, width in groups:
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    second = [*map(latex, layout.factors), *(latex(column.label) for column in layout.columns)]
    return [" & ".join(first) + r" \\", "".join(rules), " & ".join(second) + r" \\", r"\midrule"]


def _lines(layout: TableLayout) -> list[str]:
    lines: list[str] = []
    previous: tuple[str, ...] = ()
    for line in layout.lines:
        lines += [r"\midrule"] if line.starts_group else []
        lines.append(f"% runs: {' '.join(line.run_ids) or ABSENT}")
        cells = [*map(latex, unrepeated(line.labels, previous)), *map(_entry, line.entries)]
        lines.append(" & ".join(cells) + r" \\")
        previous = line.labels
    if layout.chance and layout.factors:
        blanks = [""] * (len(layout.factors) - 1)
        lines += [
            r"\midrule",
            " & ".join(["chance", *blanks, *(latex(entry.text) for entry in layout.chance)]) + r" \\",
        ]
    return lines


def _entry(entry: TableEntry) -> str:
    text = rf"\textbf{{{latex(entry.text)}}}" if entry.best else latex(entry.text)
    text += rf" {{\scriptsize $\pm$ {latex(entry.spreads)}}}" if entry.spread else ""
    text += f"$^{{{entry.mark}}}$" if entry.mark else ""
    return text + (rf" {{\scriptsize {latex(entry.beside)}}}" if entry.paper else "")
