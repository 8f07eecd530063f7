"""Combinations of what is scored with the rest of a configuration that cannot be, whatever each field says alone."""

from collections.abc import Iterator

from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.finetuning import ScrollsFinetuning
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.tokenization import BytesTokenizer, WordPieceTokenizer, WordsTokenizer
from paribus.config.schema import RunConfig
from paribus.evaluation.suites.registry import prompted
from paribus.evaluation.suites.segmentations import SEGMENTATIONS
from paribus.evaluation.suites.translations import TRANSLATIONS, TranslationSet

_BYTES_PER_TOKEN = 4
"""Of English prose with a vocabulary of some ten thousand tokens, a little more."""


def impossible_scoring(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong and what would be right) of every such combination."""
    yield from _pairs(config)
    yield from _evaluation(config)
    yield from _finetuning(config)


def _pairs(config: RunConfig) -> Iterator[tuple[str, str]]:
    """What an encoder-decoder can be scored on, and what only that can."""
    evaluation, translates = config.evaluation, isinstance(config.model, EncoderDecoderModel)
    sets = [TRANSLATIONS[name] for name in evaluation.tasks if name in TRANSLATIONS]
    if not translates:
        for chosen in sets:
            message = f"{chosen.name} is translated by an encoder_decoder, and model.kind is {config.model.kind}"
            yield "evaluation.tasks", f"{message}; use model=wmt_small with corpus=parallel, or take it out"
        return
    if continued := prompted(evaluation.tasks):
        message = f"{', '.join(continued)} scores what follows a text, which encoder_decoder cannot"
        yield "evaluation.tasks", f"{message}; use evaluation=heldout, which has none"
    if evaluation.precision != "fp32":
        yield "evaluation.precision", f"{evaluation.precision}, but an encoder_decoder is scored in fp32 only"
    if evaluation.texts:
        message = f"{', '.join(evaluation.texts)} has texts without a source, which encoder_decoder cannot score"
        yield "evaluation.texts", f"{message}; leave it empty"
    if isinstance(config.corpus, ParallelCorpus):
        yield from _directions(config.corpus, sets)


def _directions(corpus: ParallelCorpus, sets: list[TranslationSet]) -> Iterator[tuple[str, str]]:
    """A set is translated in the direction that its name says; the corpus must say that it has the same."""
    source, target = (language or "an unnamed language" for language in corpus.languages())
    for chosen in sets:
        if (source, target) == (chosen.source, chosen.target):
            continue
        back = next(name for name, other in TRANSLATIONS.items() if chosen.reverses(other))
        said = f"say corpus.source_language={chosen.source} corpus.target_language={chosen.target} if that is so"
        yield (
            "evaluation.tasks",
            f"{chosen.name} translates from {chosen.source} to {chosen.target}, the corpus from {source} to {target} "
            "(corpus.source_language, or the files' suffix, or corpus.source_field); "
            + (f"take {back}" if (source, target) == (chosen.target, chosen.source) else said),
        )


def _evaluation(config: RunConfig) -> Iterator[tuple[str, str]]:
    evaluation = config.evaluation
    tokenizer, segmented = config.tokenizer, [name for name in evaluation.tasks if name in SEGMENTATIONS]
    if segmented and isinstance(tokenizer, WordPieceTokenizer | WordsTokenizer) and _whole_words_unknown(tokenizer):
        looked = f"{', '.join(segmented)} looks for each token in the text"
        message = f"{looked}, and {tokenizer.kind} makes one of an unknown word"
        yield "evaluation.tasks", f"{message}; use tokenizer.unknown=byte_fallback"
    wanted, last = evaluation.checkpoints_read, evaluation.last_checkpoints
    asked = f"{last} exceeds"
    if evaluation.average_checkpoints > 1:
        with_last = f"with evaluation.last_checkpoints={last}"
        asked = f"{evaluation.average_checkpoints}, {with_last}, takes {wanted} checkpoints, more than"
    for name in ("checkpoints", "keep_checkpoints"):
        if wanted > (most := getattr(config.training, name)):
            yield evaluation.checkpoints_path, f"{asked} training.{name}={most}"
    if len(set(evaluation.shots)) < len(evaluation.shots):
        yield "evaluation.shots", "lists a number twice"
    for task, shots in (evaluation.shots_of or {}).items():
        if len(set(shots)) < len(shots):
            yield f"evaluation.shots_of.{task}", "lists a number twice"


def _whole_words_unknown(tokenizer: WordPieceTokenizer | WordsTokenizer) -> bool:
    return tokenizer.unit == "character" and tokenizer.unknown == "token"


def _finetuning(config: RunConfig) -> Iterator[tuple[str, str]]:
    finetuning = config.finetuning
    if not isinstance(finetuning, ScrollsFinetuning):
        return
    if isinstance(config.model, EncoderDecoderModel):
        message = "scrolls fine-tunes language models, which model.kind=encoder_decoder is not"
        yield "finetuning.kind", f"{message}; use finetuning=none, or a model that is llama or gpt_neox"
        return
    size = 1 if isinstance(config.tokenizer, BytesTokenizer) else _BYTES_PER_TOKEN
    model, context = config.model, f"model.context_length={config.model.context_length}"
    half = model.context_length // 2 * size
    if model.context_bytes is not None:
        half, context = model.context_bytes // 2, f"model.context_bytes={model.context_bytes}"
    if finetuning.answer_characters > half:
        message = f"{finetuning.answer_characters} characters ({size} to a token) take more than half of"
        yield "finetuning.answer_characters", f"{message} {context}; use {half} or less, or a longer context"
