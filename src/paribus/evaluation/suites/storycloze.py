"""StoryCloze (Mostafazadeh et al. 2016): the right ending of a story of four sentences."""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Record, index, text
from paribus.evaluation.tasks.items import Item

SENTENCES = 4


def item(name: str, record: Record) -> Item:
    """Fields input_sentence_1 to input_sentence_4, sentence_quiz1, sentence_quiz2, answer_right_ending (1 or 2)."""
    query = " ".join(text(record, f"input_sentence_{number}") for number in range(1, SENTENCES + 1))
    choices = (text(record, "sentence_quiz1"), text(record, "sentence_quiz2"))
    return Item(name, query, choices, index(record, "answer_right_ending", choices, first=1))


STORYCLOZE = Benchmark(
    "storycloze",
    "test",
    item,
    BenchmarkPrompt("StoryCloze 2016 test, prompt of lm-eval storycloze_2016"),
    Hub("LSDSem/story_cloze", "2016", train=False),
)
