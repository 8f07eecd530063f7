"""Segmentation scores as the script of the SIGHAN bakeoffs counts them, with its dependence on `diff`.

The script `score` of the second bakeoff (2005) hands the words of a sentence, one a line, to `diff` and takes the lines
left in common for the right words. That is the number of words whose ends agree, but for two accidents: `diff` may
align equal words at different places (more right words), and leaves out some agreeing words where a word is frequent in
a sentence, because it does not look for the longest common sequence (fewer). `segmentation_scores` has neither.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from paribus.errors import InfrastructureError
from paribus.evaluation.measures.segmentation import SegmentationScores, check_same_text, scores_of_counts


def script_scores(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> SegmentationScores:
    """Precision, recall and F1 that the script prints, to be compared with published ones; a `diff` a sentence.

    Words hold no whitespace. Raises DataError as `segmentation_scores` does and InfrastructureError where `diff` is
    not installed.
    """
    check_same_text(predicted, gold)
    program = shutil.which("diff")
    if program is None:
        raise InfrastructureError("the bakeoff's way of counting needs the program diff (GNU diffutils) on the PATH")
    with tempfile.TemporaryDirectory() as directory:
        correct = sum(
            len(words) if words == reference else _common(program, Path(directory), words, reference)
            for words, reference in zip(map(list, predicted), map(list, gold), strict=True)
        )
    return scores_of_counts(correct, sum(map(len, predicted)), sum(map(len, gold)))


def _common(program: str, directory: Path, words: list[str], reference: list[str]) -> int:
    """Lines that `diff` leaves in common."""
    paths = directory / "gold", directory / "predicted"
    for path, lines in zip(paths, (reference, words), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = subprocess.run([program, *paths], capture_output=True, check=False)
    if result.returncode not in (0, 1):
        raise InfrastructureError(f"{program} failed: {result.stderr.decode(errors='replace').strip()}")
    return len(reference) - sum(line.startswith(b"< ") for line in result.stdout.split(b"\n"))
