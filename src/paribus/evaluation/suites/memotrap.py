"""MemoTrap (Liu and Liu 2023): prompts whose right answer is not the one that was often read."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Record, index, literal, text, texts
from paribus.evaluation.tasks.items import Item

FILES = ("proverb_ending", "proverb_translation", "hate_speech_ending", "history_of_science")


def item(name: str, record: Record) -> Item:
    """Fields prompt, classes (a list, or one written as a string) and answer_index."""
    choices = texts({"classes": literal(record, "classes")}, "classes")
    return Item(name, text(record, "prompt"), choices, index(record, "answer_index", choices))


def _benchmark(file: str) -> Benchmark:
    prompt = BenchmarkPrompt(f"MemoTrap {file}, prompt of lm-eval inverse_scaling_memo_trap", target_delimiter="")
    return Benchmark(f"memotrap_{file}", file, item, prompt, parent="memotrap", also=("exact_match",))


MEMOTRAP = tuple(_benchmark(file) for file in FILES)
