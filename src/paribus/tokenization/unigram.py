"""Unigram: the vocabulary of a unigram language model over pieces, pruned until it has the size asked for.

Kudo, *Subword Regularization* (2018), section 3.2, by the trainer of `sentencepiece`, which scales better: 32,000
pieces from the words of 100 MB of English took it 53 s and 0.3 GB, the trainer of `tokenizers` 81 s and 0.8 GB.

The trainer reads the word table, never the corpus, and gets its seeds from here: its own took 4.1 GB, and
miss what only one word contains, so that the text became 8 % more tokens. It runs in one thread, because its 32-bit
sums depend on the number of threads, and reads rare words first, which loses least in such sums. Every unit counts as a
word that occurs once more than it does: so each has a score, and no piece is kept for want of another way to spell it.
"""

import io
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.tokenization.bpe import Progress, Stopped
from paribus.tokenization.vocabulary import UnitKind

SEEDS = 1_000_000
"""Seed pieces that training starts from at most; the trainer's own default."""
LONGEST: dict[UnitKind, int] = {"character": 16, "byte": 48}
"""Units of the longest piece: the trainer's own 16 characters, of which most scripts' have up to three bytes."""
PRUNE = 0.25
"""Share of the pieces that a round of pruning removes at most; the trainer's own default."""
_LEAST_PRUNED, _MOST_PRUNED = 0.05, 0.5
LONGEST_WORD = 1024
"""Longer pre-tokens are cut for training: the trainer's lattice is in 32-bit floats."""
_HARMLESS = (
    range(0x0100, 0x0250),
    range(0x4E00, 0xA000),
    range(0xE000, 0xF900),
    range(0xF0000, 0xFFFFE),
    range(0x100000, 0x10FFFE),
)
"""Codepoints that stand for units: letters and private use, in order, none of which the trainer treats specially."""
_QUIET = 2
_FEWEST = 2
"""Occurrences that a seed needs."""
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class UnigramTraining:
    """Pieces as tuples of unit indices, the units themselves first, then by falling score."""

    tokens: tuple[tuple[int, ...], ...]
    scores: npt.NDArray[np.float64]
    """Natural logarithm of each piece's probability, shape (tokens,)."""
    stopped: Stopped
    """`exhausted` where the corpus has not enough different pieces for the size asked for."""


def train_unigram(
    units: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    alphabet: int,
    size: int,
    *,
    longest: int = LONGEST["character"],
    prune: float = PRUNE,
    progress: Progress | None = None,
) -> UnigramTraining:
    """Train on words of unit indices below `alphabet` to `size` pieces of at most `longest` units, all units included.

    Word i is `units[offsets[i]:offsets[i + 1]]` and occurs `counts[i]` times. Each round of pruning removes the share
    `prune` of the pieces, those whose loss costs the least likelihood. `progress` is called with the pieces there are
    at the start and at the end: the trainer tells nothing in between. Raises ConfigurationError for a size below the
    alphabet or an alphabet of more than 158,000 units.
    """
    units_as_text = _codepoints(alphabet)
    if not _LEAST_PRUNED <= prune <= _MOST_PRUNED:
        raise ConfigurationError(f"tokenizer.prune: {prune} is not in {_LEAST_PRUNED} to {_MOST_PRUNED}")
    if size < alphabet:
        raise ConfigurationError(
            f"tokenizer.vocab_size: {size} pieces are fewer than the {alphabet} units of the alphabet"
        )
    text = np.array([*map(ord, units_as_text)], np.uint32)[units].tobytes().decode("utf-32-le")
    spans = itertools.pairwise(offsets.tolist())
    words = ((text[start:end], count) for (start, end), count in zip(spans, counts.tolist(), strict=True))
    table = _table(itertools.chain(words, ((unit, 1) for unit in units_as_text)))
    if progress is not None:
        progress(alphabet)
    pieces = _pieces(table, size, longest, prune) if table else {}
    training = _assemble(pieces, alphabet, size)
    if progress is not None:
        progress(len(training.tokens))
    return training


def _codepoints(number: int) -> list[str]:
    made = list(itertools.islice(map(chr, itertools.chain(*_HARMLESS)), number))
    if len(made) < number:
        raise ConfigurationError(
            f"tokenizer.unit: an alphabet of {number} characters is more than Unigram training can tell apart; "
            "train on bytes (unit=byte)"
        )
    return made


def _table(words: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Counts of words of at most LONGEST_WORD units, rare ones first: the same for every order of `words`."""
    counts: dict[str, int] = {}
    for word, count in words:
        for start in range(0, len(word), LONGEST_WORD):
            part = word[start : start + LONGEST_WORD]
            counts[part] = counts.get(part, 0) + count
    return {word: count for count, word in sorted((count, word) for word, count in counts.items() if count > 0)}


def _pieces(table: Mapping[str, int], size: int, longest: int, prune: float) -> dict[str, float]:
    """Pieces, all characters of `table` among them, and their scores."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    seeds = seed_pieces(list(table), list(table.values()), longest, SEEDS)
    written = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="paribus-") as folder:
        path = Path(folder) / "seeds.tsv"
        path.write_text("".join(f"{piece}\t{count}\n" for piece, count in seeds), encoding="utf-8")
        SentencePieceTrainer.train(
            sentence_iterator=(f"{word}\t{count}" for word, count in table.items()), input_format="tsv",
            model_writer=written, model_type="unigram", vocab_size=size + 1, hard_vocab_limit=False,
            seed_sentencepieces_file=str(path), seed_sentencepiece_size=len(seeds) + size,
            max_sentencepiece_length=longest, max_sentence_length=8 * LONGEST_WORD, character_coverage=1.0,
            shrinking_factor=1 - prune, required_chars=_all_but_the_commonest(table),
            normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False,
            split_by_unicode_script=False, split_by_number=False, split_by_whitespace=False, split_digits=False,
            byte_fallback=False, unk_id=0, bos_id=-1, eos_id=-1, pad_id=-1, num_threads=1, minloglevel=_QUIET,
        )  # fmt: skip
    model = SentencePieceProcessor(model_proto=written.getvalue())
    return {model.id_to_piece(number): model.get_score(number) for number in range(1, model.get_piece_size())}


def _all_but_the_commonest(table: Mapping[str, int]) -> str:
    """The characters of `table` to ask for by name: coverage is a 32-bit float, 1.0 before the rarest are reached."""
    counts: Counter[str] = Counter()
    for word, count in table.items():
        for character in word:
            counts[character] += count
    return "".join(sorted(counts.keys() - {max(counts, key=lambda character: (counts[character], character))}))


def _assemble(pieces: Mapping[str, float], alphabet: int, size: int) -> UnigramTraining:
    ranks = {codepoint: rank for rank, codepoint in enumerate(_codepoints(alphabet))}
    longer = sorted((-score, piece) for piece, score in pieces.items() if piece not in ranks)
    ordered = [*ranks, *(piece for _, piece in longer)]
    return UnigramTraining(
        tokens=tuple(tuple(map(ranks.__getitem__, piece)) for piece in ordered),
        scores=np.array([pieces[piece] for piece in ordered], dtype=np.float64),
        stopped="vocab_size" if len(ordered) == size else "exhausted",
    )


@dataclass(frozen=True)
class _Level:
    """All substrings of one length that occur at least twice; `best` counts the commonest one longer on either side."""

    starts: Integers
    counts: Integers
    best: Integers


# The substrings that Unigram training starts from: those that cover most of the corpus.
#
# `sentencepiece` finds them with a suffix array of the corpus, whose memory is many times the corpus. Here they are
# counted over distinct pre-tokens, weighted by how often each occurs, one length after the other: the same counts, in
# memory that the word table bounds.
def seed_pieces(words: Sequence[str], counts: Sequence[int], longest: int, limit: int) -> list[tuple[str, int]]:
    """Substrings of 2 to `longest` characters of distinct `words` with their counts, at most `limit`.

    A substring that one character always follows, or precedes, is left out for the longer one.
    The rest is ordered by count times length, the seeds' score in Kudo (2018), then by string.
    """
    text = "".join(words)
    starts, lengths, occurrences = _levels(text, words, counts, longest)
    score = occurrences * lengths
    least = 0 if len(score) <= limit else int(np.partition(score, len(score) - limit)[len(score) - limit])
    chosen = np.flatnonzero(score >= least).tolist()
    seeds = [(-int(score[i]), text[starts[i] : starts[i] + lengths[i]], int(occurrences[i])) for i in chosen]
    return [(piece, count) for _, piece, count in sorted(seeds)[:limit]]


def _levels(text: str, words: Sequence[str], counts: Sequence[int], longest: int) -> tuple[Integers, ...]:
    """Starts, lengths and counts of all seeds, shorter ones first."""
    seeds: list[tuple[Integers, ...]] = []
    for length, level in enumerate(_substrings(text, words, counts, longest), start=1):
        chosen = level.counts > level.best
        if length > 1:
            seeds.append((level.starts[chosen], np.full(int(chosen.sum()), length), level.counts[chosen]))
    if not seeds:
        return (np.zeros(0, np.int64),) * 3
    return tuple(np.concatenate(column) for column in zip(*seeds, strict=True))


def _substrings(text: str, words: Sequence[str], counts: Sequence[int], longest: int) -> Iterator[_Level]:
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    codepoints = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    units = np.unique(codepoints, return_inverse=True)[1].astype(np.int64)
    alphabet = int(units.max(initial=0)) + 1
    positions = np.arange(len(units))
    ends = np.repeat(np.cumsum(lengths), lengths)
    weights = np.repeat(np.fromiter(counts, np.int64, len(words)), lengths)
    keys, place = units, np.full(len(units) + 1, -1)
    level: _Level | None = None
    for length in range(1, longest + 1):
        distinct, first, groups = np.unique(keys, return_index=True, return_inverse=True)
        totals = _sums(groups, weights, len(distinct))
        if level is not None:
            np.maximum.at(level.best, distinct // alphabet, totals)
            np.maximum.at(level.best, place[positions[first] + 1], totals)
            yield level
        often = totals >= _FEWEST
        number = np.cumsum(often) - 1
        level = _Level(positions[first[often]], totals[often], np.zeros(int(often.sum()), np.int64))
        place[positions] = np.where(often[groups], number[groups], -1)
        going_on = often[groups] & (positions + length < ends)
        groups, positions = number[groups[going_on]], positions[going_on]
        ends, weights = ends[going_on], weights[going_on]
        if not len(positions):
            break
        keys = groups * alphabet + units[positions + length]
    if level is not None:
        yield level


def _sums(groups: Integers, weights: Integers, size: int) -> Integers:
    """Sums of `weights` by group, exact (`np.bincount` adds in float64)."""
    order = np.argsort(groups, kind="stable")
    totals = np.concatenate([[0], np.cumsum(weights[order])])
    ends = np.searchsorted(groups[order], np.arange(size), side="right")
    return np.diff(np.concatenate([[0], totals[ends]]))
