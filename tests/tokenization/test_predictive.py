"""Boundaries where a language model is least sure, against a prefix-by-prefix computation with tiny random models."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
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
    model = AutoModelForCausalLM.from_pretrained(directory).eval()
    entropies = []
    for length in range(1, len(ids) + 1):
        step = context_length // 2
        start = 0 if length <= context_length else step * math.ceil((length - context_length) / step)
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:length]])).logits[0, -1].double()
        p = torch.softmax(logits, dim=-1)
        entropies.append(float(-(p * p.log2()).sum()))
    return entropies


def obvious_pieces(text: str, entropies: list[float]) -> list[str]:
    """`entropies[i]` is H after i characters."""
    pieces, piece = [], ""
    for i, character in enumerate(text, start=1):
        piece += character
        if i == len(text) or entropies[i - 1] < entropies[i] > entropies[i + 1]:
            pieces.append(piece)
            piece = ""
    return pieces


def test_pieces_end_at_strict_local_maxima_of_the_entropy(bert_style: Path) -> None:
    pretokenizer, vocabulary = PredictiveEntropySpans(bert_style), [*SPECIAL, *CHARACTERS]
    ids = [vocabulary.index(character) if character in CHARACTERS else 1 for character in SENTENCE]
    entropies = obvious_entropies(bert_style, [2, *ids], 64)
    assert pretokenizer.entropies([SENTENCE])[0].tolist() == pytest.approx(entropies, abs=1e-3)
    expected = obvious_pieces(SENTENCE, entropies)
    assert pretokenizer.pieces(SENTENCE) == expected
    assert 3 < len(expected) < len(SENTENCE) / 2 + 1


def test_a_paribus_checkpoint_reads_a_line_after_the_end_of_document_token_in_windows(checkpoint: Path) -> None:
    tokenizer, pretokenizer = Tokenizer.load(checkpoint / "tokenizer"), PredictiveEntropySpans(checkpoint)
    for length in (14, 15, 16, 17, 23, 24, 25, 60):
        text = (SENTENCE * 4)[:length]
        entropies = obvious_entropies(checkpoint, [tokenizer.eos_id, *tokenizer.encode(text).tolist()], 16)
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


def test_each_line_is_cut_alone_and_breaks_are_pieces(bert_style: Path) -> None:
    pretokenizer = PredictiveEntropySpans(bert_style)
    line = pretokenizer.pieces(SENTENCE)
    assert pretokenizer.pieces(f"{SENTENCE}\r\n\n{SENTENCE}\u2028") == [*line, "\r", "\n", "\n", *line, "\u2028"]
    assert pretokenizer.pieces("") == [] and pretokenizer.pieces("\n") == ["\n"]
    assert pretokenizer.pieces("中") == ["中"]


def test_checkpoints_whose_tokens_are_not_all_characters_are_refused(tmp_path: Path) -> None:
    for number, (options, reason) in enumerate(
        [({"vocab_size": 25}, "a token is b"), ({"unit": "byte", "vocab_size": 257}, "its units are bytes")]
    ):
        model = tmp_path / f"{number}"
        save_paribus_checkpoint(model, **options)  # type: ignore[arg-type]
        message = rf"pretokenizer\.model: the tokens of .* are not characters \({reason}"
        with pytest.raises(ConfigurationError, match=message):
            PredictiveEntropySpans(model).pieces(SENTENCE)
    save_paribus_checkpoint(tmp_path / "refusing", unknown="refuse", vocab_size=len(set(SENTENCE)) + 1)
    with pytest.raises(DataError, match=r"'龘' \(U\+9F98\) is not in the tokenizer's alphabet"):
        PredictiveEntropySpans(tmp_path / "refusing").pieces("中龘")


def test_the_state_names_the_model_and_is_checked_on_load(bert_style: Path, tmp_path: Path) -> None:
    state = json.dumps(PredictiveEntropySpans(bert_style, threshold=2).to_state())
    restored = PredictiveEntropySpans.from_state(json.loads(state))
    assert json.dumps(restored.to_state()) == state
    moved = shutil.copytree(bert_style, tmp_path / "moved")
    (moved / "README.md").write_text("nothing to do with the model", encoding="utf-8")
    again = PredictiveEntropySpans.from_state(json.loads(state), model=moved)
    assert again.pieces(SENTENCE) == restored.pieces(SENTENCE)
    with (moved / "config.json").open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(DataError, match="is not the language model the pre-tokenizer was made with"):
        PredictiveEntropySpans.from_state(json.loads(state), model=moved)


@pytest.mark.parametrize(("device", "index"), [("auto", 0), ("cuda:1", 1)])
def test_a_gpu_computes_the_same_in_larger_batches_by_length(
    device: str, index: int, bert_style: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With CUDA's answers in place of a GPU: tensors and models that go there stay, and are counted."""
    lines, sent = [SENTENCE, SENTENCE[:7]] * 200, list[tuple[str, tuple[int, ...]]]()
    expected = PredictiveEntropySpans(bert_style).entropies(lines)

    def sending(to: Any) -> Any:
        def send(item: Any, *arguments: Any, **options: Any) -> Any:
            if arguments and isinstance(arguments[0], torch.device) and arguments[0].type == "cuda":
                sent.append((str(arguments[0]), tuple(getattr(item, "shape", ()))))
                return item
            return to(item, *arguments, **options)

        return send

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.Tensor, "to", sending(torch.Tensor.to))
    monkeypatch.setattr("transformers.GPT2LMHeadModel.to", sending(torch.nn.Module.to))
    entropies = PredictiveEntropySpans(bert_style, device=device).entropies(lines)
    assert {place for place, _ in sent} == {f"cuda:{index}"}
    assert sent[0] == (f"cuda:{index}", ()), "the model goes there first"
    assert sorted(shape for _, shape in sent[1:]) == [(200, 16), (200, 32)]
    for line, of_cpu in zip(entropies, expected, strict=True):
        assert line.tolist() == pytest.approx(of_cpu.tolist(), abs=2e-4)


def test_a_plateau_is_no_maximum_and_a_threshold_is_reached_by_its_own_value() -> None:
    spans = object.__new__(PredictiveEntropySpans)
    spans.threshold = None
    assert spans.boundaries(np.array([1.0, 2.0, 2.0, 1.0, 3.0, 1.0])) == [4]
    spans.threshold = 3.5
    assert spans.boundaries(np.array([1.0, 2.0, 1.0, 3.5, 1.0])) == [3]
