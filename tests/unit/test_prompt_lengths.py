"""How many prompts are too long for a context, from the bytes of items and examples."""

from paribus.evaluation.items import AnswerItem, AnyItem, BlankItem, Item, ItemSet, TextItem
from paribus.evaluation.prompt_lengths import long_prompts
from paribus.evaluation.suites.benchmark import Prompt

PROMPT = Prompt("test", description="abc")
ITEMS: tuple[AnyItem, ...] = (
    Item("1", "four", ("a", "bb"), 0),
    BlankItem("2", ("é", "a"), "four", 0),
    TextItem("3", "four", "12"),
    AnswerItem("4", "four", (("1", "1"), ("1",))),
)


def test_a_prompt_has_the_bytes_of_its_examples_its_question_and_its_longest_answer() -> None:
    for item in ITEMS:
        items = ItemSet([item, item], [item], "test")
        for shots in (0, 1, 3):
            size = 3 + shots * (6 + len(" \n\n")) + 6
            assert long_prompts(items, PROMPT, shots, size) == 0
            assert long_prompts(items, PROMPT, shots, size - 1) == 2
    assert long_prompts(ItemSet([ITEMS[0]], [], "none"), PROMPT, 0, 8) == 1
