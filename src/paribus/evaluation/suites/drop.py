"""DROP (Dua et al. 2019): questions about a passage that need counting, sorting or arithmetic."""

from collections.abc import Mapping

from paribus.errors import DataError
from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Generation, Hub, Record, entry, string, text
from paribus.evaluation.tasks.items import AnswerItem

DATE = ("day", "month", "year")


def item(name: str, record: Record) -> AnswerItem:
    """Fields passage, question, answer (number, spans, date) and validated_answers (a list of each).

    Examples show the answer's text; lm-eval's own task shows the names of its fields there.
    """
    answers = dict.fromkeys(map(_spans, [_block(record, "answer"), *_validated(record)]))
    if not any(spans[0].strip() for spans in answers):
        raise DataError("field `answer` has no number, spans or date")
    accepted = tuple(spans for spans in answers if spans[0].strip())
    return AnswerItem(name, f"{text(record, 'passage')} {text(record, 'question')}", accepted)


def _block(record: Record, field: str) -> Record:
    block = entry(record, field)
    if not isinstance(block, Mapping):
        raise DataError(f"field `{field}` must hold number, spans and date, not {block!r}")
    return block


def _validated(record: Record) -> list[Record]:
    """The other annotators' answers."""
    block = _block(record, "validated_answers") if "validated_answers" in record else {}
    lists = [block.get(field, []) for field in ("number", "spans", "date")]
    if not all(isinstance(part, list) and len(part) == len(lists[0]) for part in lists):
        raise DataError(f"field `validated_answers` must hold lists of one length, not {block!r}")
    return [{"number": number, "spans": spans, "date": date} for number, spans, date in zip(*lists, strict=True)]


def _spans(answer: Record) -> tuple[str, ...]:
    if number := string(answer, "number"):
        return (number,)
    spans = entry(answer, "spans")
    if not isinstance(spans, list) or not all(isinstance(span, str) for span in spans):
        raise DataError(f"field `spans` must be a list of texts, not {spans!r}")
    if spans:
        return tuple(spans)
    date = _block(answer, "date")
    return (" ".join(string(date, part) for part in DATE).strip(),)


DROP = Benchmark(
    "drop",
    "validation",
    item,
    BenchmarkPrompt("DROP validation, prompt of lm-eval drop"),
    Hub("EleutherAI/drop"),
    Generation((".",), "drop"),
)
