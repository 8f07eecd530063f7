"""The picture of what vocabularies share: names of any length stand in it, and apart."""

from itertools import pairwise

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from paribus.reporting.plots import picture
from paribus.reporting.plots.picture import style
from paribus.reporting.plots.vocabularies import OverlapMatrix, overlap_plot

NAMES = (
    ("bpe", "unigram"),
    ("bpe · merge_rank", "scaffold_bpe · merge_rank"),
    ("bpe", "scaffold_bpe", "unigram · viterbi"),
    ("a name that somebody gave an arm of a table and that is long", "another one that is about as long as that"),
    tuple(f"tokenizer_{number} · corpus_{number}" for number in range(8)),
    ("分词" * 20, "bpe"),
)


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("names", NAMES, ids=len)
def test_names_stand_in_the_picture_and_beside_each_other(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(picture, "mark_legends", drawn.append)
    count = len(names)
    with mpl.rc_context(style()):
        overlap_plot(OverlapMatrix(names, [31_999] * count, [[0.5] * count] * count, [[12.5] * count] * count))
    drawn[0].draw_without_rendering()
    (axes,), whole = drawn[0].axes, drawn[0].bbox
    below = axes.get_xticklabels()
    for text in (*below, *axes.get_yticklabels(), axes.xaxis.label, axes.yaxis.label):
        box = text.get_window_extent()
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1, text
    if below[0].get_rotation() == 0:
        boxes = [text.get_window_extent() for text in below]
        assert all(first.x1 < second.x0 for first, second in pairwise(boxes))
