"""Boundaries where a language model is least sure, against a prefix-by-prefix computation with tiny random models."""

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.config.groups.tokenization import PatternPretokenizer, PredictiveEntropyPretokenizer
from paribus.engine.local import LocalEngine
from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer, build
from paribus.tokenization.predictive import PredictiveEntropySpans
from support.character_models import CHARACTERS, SENTENCE, SPECIAL, save_bert_style_model, save_paribus_checkpoint


@pytest.fixture(scope="module")
def bert_style(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models") / "bert_style"
    save_bert_style_model(directory)
    return directory


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models") / "step_00000001"
    save_paribus_checkpoint(directory)
    return directory


def obvious_entropies(directory: Path, ids: list[int], context_length: int) -> list[float]:
    """Entropy after each prefix, every one computed alone."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(directory).eval()
    found = []
    for length in range(1, len(ids) + 1):
        step = context_length // 2
        start = 0 if length <= context_length else step * math.ceil((length - context_length) / step)
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:length]])).logits[0, -1].double()
        p = torch.softmax(logits, dim=-1)
        found.append(float(-(p * p.log2()).sum()))
    return found


def obvious_pieces(text: str, entropies: list[float], threshold: float = -1.0) -> list[str]:
    """`entropies[i]` is H after i characters."""
    pieces, piece = [], ""
    for i, character in enumerate(text, start=1):
        piece += character
        inside = i < len(text)
        if not inside or (entropies[i - 1] < entropies[i] > entropies[i + 1] and entropies[i] >= threshold):
            pieces.append(piece)
            piece = ""
    return pieces


def bert_ids(text: str) -> list[int]:
    vocabulary = [*SPECIAL, *CHARACTERS]
    return [2, *(vocabulary.index(character) if character in CHARACTERS else 1 for character in text)]


def test_pieces_end_at_strict_local_maxima_of_the_entropy(bert_style: Path) -> None:
    pretokenizer = PredictiveEntropySpans(bert_style)
    entropies = obvious_entropies(bert_style, bert_ids(SENTENCE), 64)
    assert pretokenizer.entropies([SENTENCE])[0].tolist() == pytest.approx(entropies, abs=1e-3)
    expected = obvious_pieces(SENTENCE, entropies)
    assert pretokenizer.pieces(SENTENCE) == expected
    assert 3 < len(expected) < len(SENTENCE) / 2 + 1


def test_a_paribus_checkpoint_reads_a_line_after_the_end_of_document_token(checkpoint: Path) -> None:
    tokenizer = Tokenizer.load(checkpoint / "tokenizer")
    text = SENTENCE[:14]
    ids = [tokenizer.eos_id, *tokenizer.encode(text).tolist()]
    entropies = obvious_entropies(checkpoint, ids, 16)
    pretokenizer = PredictiveEntropySpans(checkpoint)
    assert pretokenizer.entropies([text])[0].tolist() == pytest.approx(entropies, abs=1e-3)
    assert pretokenizer.pieces(text) == obvious_pieces(text, entropies)


def test_a_character_outside_the_alphabet_is_its_bytes(tmp_path: Path) -> None:
    save_paribus_checkpoint(tmp_path / "model", unknown="byte_fallback", vocab_size=len(set(SENTENCE)) + 257)
    tokenizer = Tokenizer.load(tmp_path / "model" / "tokenizer")
    text = "中国龘人民"
    ids = [tokenizer.eos_id, *tokenizer.encode(text).tolist()]
    assert len(ids) == 1 + len(text) + 2
    entropies = obvious_entropies(tmp_path / "model", ids, 16)
    after_characters = [entropies[i] for i in (0, 1, 2, 5, 6, 7)]
    pretokenizer = PredictiveEntropySpans(tmp_path / "model")
    assert pretokenizer.entropies([text])[0].tolist() == pytest.approx(after_characters, abs=1e-3)
    assert pretokenizer.pieces(text) == obvious_pieces(text, after_characters)


def test_lines_longer_than_the_context_are_read_in_windows(checkpoint: Path) -> None:
    tokenizer = Tokenizer.load(checkpoint / "tokenizer")
    for length in (15, 16, 17, 23, 24, 25, 60):
        text = (SENTENCE * 4)[:length]
        ids = [tokenizer.eos_id, *tokenizer.encode(text).tolist()]
        found = PredictiveEntropySpans(checkpoint).entropies([text])[0]
        assert found.tolist() == pytest.approx(obvious_entropies(checkpoint, ids, 16), abs=1e-3)


def test_each_line_is_cut_alone_and_breaks_are_pieces(bert_style: Path) -> None:
    pretokenizer = PredictiveEntropySpans(bert_style)
    line = pretokenizer.pieces(SENTENCE)
    assert pretokenizer.pieces(f"{SENTENCE}\r\n\n{SENTENCE}\u2028") == [*line, "\r", "\n", "\n", *line, "\u2028"]
    assert pretokenizer.pieces("") == [] and pretokenizer.pieces("\n") == ["\n"]
    assert pretokenizer.pieces("中") == ["中"]


def test_a_character_that_nothing_stands_for_is_refused(tmp_path: Path) -> None:
    save_paribus_checkpoint(tmp_path / "model", unknown="refuse", vocab_size=len(set(SENTENCE)) + 1)
    with pytest.raises(DataError, match=r"'龘' \(U\+9F98\) is not in the tokenizer's alphabet"):
        PredictiveEntropySpans(tmp_path / "model").pieces("中龘")


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"vocab_size": 25}, "a token is b"), ({"unit": "byte", "vocab_size": 257}, "its units are bytes")],
)
def test_a_checkpoint_whose_tokens_are_not_characters_is_refused(
    options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    save_paribus_checkpoint(tmp_path / "model", **options)
    with pytest.raises(
        ConfigurationError, match=rf"pretokenizer\.model: the tokens of .* are not characters \({reason}"
    ):
        PredictiveEntropySpans(tmp_path / "model").pieces(SENTENCE)


def test_the_state_names_the_model_and_is_checked_on_load(bert_style: Path, tmp_path: Path) -> None:
    written = json.dumps(PredictiveEntropySpans(bert_style, threshold=2).to_state())
    restored = PredictiveEntropySpans.from_state(json.loads(written))
    assert json.dumps(restored.to_state()) == written
    moved = shutil.copytree(bert_style, tmp_path / "moved")
    again = PredictiveEntropySpans.from_state(json.loads(written), model=moved)
    assert again.pieces(SENTENCE) == restored.pieces(SENTENCE)
    (moved / "README.md").write_text("nothing to do with the model", encoding="utf-8")
    PredictiveEntropySpans.from_state(json.loads(written), model=moved)
    with (moved / "config.json").open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(DataError, match="is not the language model the pre-tokenizer was made with"):
        PredictiveEntropySpans.from_state(json.loads(written), model=moved)


class OnGpu:
    """CUDA's answers in place of a GPU: tensors and models that go there stay, and where they were sent is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[str, tuple[int, ...]]] = []
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        tensor_to, model_to = torch.Tensor.to, torch.nn.Module.to

        def send(tensor: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
            if given and isinstance(given[0], torch.device) and given[0].type == "cuda":
                self.sent.append((str(given[0]), tuple(tensor.shape)))
                return tensor
            return tensor_to(tensor, *given, **named)

        def place(model: torch.nn.Module, *given: Any, **named: Any) -> torch.nn.Module:
            if given and isinstance(given[0], torch.device) and given[0].type == "cuda":
                self.sent.append((str(given[0]), ()))
                return model
            return model_to(model, *given, **named)

        monkeypatch.setattr(torch.Tensor, "to", send)
        monkeypatch.setattr("transformers.GPT2LMHeadModel.to", place)


@pytest.mark.parametrize(("device", "index"), [("auto", 0), ("cuda", 0), ("cuda:1", 1)])
def test_a_gpu_computes_the_same_in_larger_batches_by_length(
    device: str, index: int, bert_style: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [SENTENCE, SENTENCE[:7]] * 200
    expected = PredictiveEntropySpans(bert_style).entropies(lines)
    gpu = OnGpu(monkeypatch)
    found = PredictiveEntropySpans(bert_style, device=device).entropies(lines)
    assert {where for where, _ in gpu.sent} == {f"cuda:{index}"}
    assert gpu.sent[0] == (f"cuda:{index}", ()), "the model goes there first"
    assert sorted(shape for _, shape in gpu.sent[1:]) == [(200, 16), (200, 32)]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tolist() == pytest.approx(theirs.tolist(), abs=2e-4)


def test_a_saved_tokenizer_computes_where_it_is_asked_to(bert_style: Path, tmp_path: Path) -> None:
    made = Tokenizer.train(
        [SENTENCE] * 2, vocab_size=300, pretokenizer=PredictiveEntropySpans(bert_style, device="cpu")
    )
    made.save(tmp_path / "tokenizer")
    for device in ("cpu", "cuda:3"):
        cutter = Tokenizer.load(tmp_path / "tokenizer", device=device).cutter
        assert isinstance(cutter, PredictiveEntropySpans) and cutter.device == device
    assert "device" not in json.loads((tmp_path / "tokenizer" / "pretokenizer.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("workers", "device", "taken"), [(64, "cuda", 4), (2, "cuda", 2), (64, "cpu", 64), (64, None, 64)]
)
def test_no_more_workers_encode_than_a_gpu_has_memory_for(
    workers: int, device: str | None, taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own copy of the model and of CUDA there, and by default there are as many as cores."""
    monkeypatch.setattr("paribus.modeling.device.resolve_device", lambda given, field: torch.device(given))
    pattern = PatternPretokenizer(kind="gpt2")
    pretokenizer = pattern if device is None else PredictiveEntropyPretokenizer(model="model", device=device)
    config = SimpleNamespace(pretokenizer=pretokenizer)
    context: Any = SimpleNamespace(config=config, engine=LocalEngine(workers), work=tmp_path)
    asked: list[int] = []

    def mapped(self: LocalEngine, *_: object, **how: bool) -> list[Path]:
        asked.append(self.workers)
        return []

    monkeypatch.setattr(LocalEngine, "map", mapped)
    monkeypatch.setattr(build, "corpus_parts", lambda corpus, directory: [])
    tokenizer: Any = SimpleNamespace(cutter=None)
    corpus: Any = SimpleNamespace(shards=lambda split: [])
    assert list(build._encode_draws(tokenizer, corpus, context, draws=1)) == []
    assert asked == [taken]
