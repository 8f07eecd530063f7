"""Plot of how much of what tokens spell is their own."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from paribus.reporting.plots.looks import Look
from paribus.reporting.plots.picture import Plot, picture


def own_shares_plot(rows: Sequence[tuple[str, Look, Sequence[int]]]) -> Plot | None:
    """Tokens by the share of their occurrences among those of all tokens that contain them, a line a row.

    `rows` are names and looks with the counts of equal bins from 0 to 1; None where nothing is counted.
    """
    shown = [row for row in rows if sum(row[2])]
    if not shown:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, look, counts in shown:
            middles = [100 * (number + 0.5) / len(counts) for number in range(len(counts))]
            heights = [100 * count / sum(counts) for count in counts]
            axes.plot(middles, heights, linestyle=look.dashes, color=look.colour, linewidth=1.6, marker=".", label=name)
        axes.set_xlabel("occurrences of a token among those of all tokens that contain it (%)")
        axes.set_ylabel("share of tokens (%)")
        axes.set_xlim(0, 100)
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside lower center", fontsize=9, ncols=min(2, len(shown)))

    caption = "Tokens by how much of what they spell is their own: on the left those that mostly occur inside longer "
    caption += "tokens, which Scaffold-BPE calls scaffold tokens."
    told = "; ".join(
        f"{name}: {100 * counts[0] / sum(counts):.1f} % in the lowest bin, "
        f"{100 * counts[-1] / sum(counts):.1f} % in the highest"
        for name, _, counts in shown
    )
    return picture("own_shares", caption, f"{caption} {told}.", (7.0, 3.8 + 0.1 * len(shown)), draw)
