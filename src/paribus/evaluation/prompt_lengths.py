"""How many prompts of a task will not fit a model's context, judged by their bytes, before there is a tokenizer."""

from paribus.evaluation.items import AnswerItem, AnyItem, BlankItem, Item, ItemSet, TextItem
from paribus.evaluation.suites.benchmark import Prompt

BYTES_PER_TOKEN = 4
"""Of English prose with a vocabulary of some ten thousand tokens, a little more."""


def long_prompts(items: ItemSet, prompt: Prompt, shots: int, context_bytes: int) -> int:
    """Scored items whose prompt with `shots` examples of mean length has more than `context_bytes` UTF-8 bytes."""
    around = len(prompt.target_delimiter.encode()) + len(prompt.fewshot_delimiter.encode())
    shown = [_size(item) + around for item in items.fewshot]
    examples = shots * sum(shown) / len(shown) if shots else 0.0
    before = examples + len(prompt.description.encode())
    return sum(before + _size(item) > context_bytes for item in items.evaluated)


def _size(item: AnyItem) -> int:
    """UTF-8 bytes of a question and its longest answer."""
    match item:
        case Item():
            return _bytes(item.query) + max(map(_bytes, item.choices))
        case BlankItem():
            return max(map(_bytes, item.contexts)) + _bytes(item.ending)
        case TextItem():
            return _bytes(item.query) + _bytes(item.target)
        case AnswerItem():
            return _bytes(item.query) + max(sum(map(_bytes, spans)) for spans in item.answers)


def _bytes(text: str) -> int:
    return len(text.encode())
