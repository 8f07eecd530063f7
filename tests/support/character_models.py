"""Tiny random causal language models whose tokens are characters, in the two formats that predictive entropy reads."""

from pathlib import Path
from typing import Any

from paribus.config.groups.model import LlamaModel
from paribus.tokenization import Tokenizer

CHARACTERS = "中国人民大学在北京的了一二三〇，。ab１"
SENTENCE = "中国人民在北京大学，一二三了的人民中国大学。"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def save_bert_style_model(directory: Path, context_length: int = 64) -> None:
    """A random GPT-2 whose tokenizer is that of Chinese BERT models."""
    import torch
    from transformers import BertTokenizer, GPT2Config, GPT2LMHeadModel

    vocabulary = [*SPECIAL, *CHARACTERS, *(f"##{character}" for character in CHARACTERS), "ab"]
    directory.mkdir()
    (directory / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizer(str(directory / "vocab.txt")).save_pretrained(directory)
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_embd=16, n_layer=2, n_head=2, n_positions=context_length, initializer_range=0.5
    )
    GPT2LMHeadModel(config).save_pretrained(directory)


def save_paribus_checkpoint(directory: Path, **options: Any) -> None:
    """What a run leaves: a Llama model with its tokenizer beside it."""
    from paribus.modeling.models import build_model, save_model

    directory.mkdir()
    size = options.pop("vocab_size", len(set(SENTENCE)) + 2)
    options = {"unit": "character", "unknown": "token", "pretokenizer": "none"} | options
    tokenizer = Tokenizer.train([SENTENCE] * 3, vocab_size=size, special_tokens=["<eos>"], **options)
    tokenizer.save(directory / "tokenizer")
    config = LlamaModel(width=16, layers=2, heads=2, ffn_width=32, context_length=16, initializer_range=0.5)
    save_model(build_model(config, tokenizer.vocab_size, seed=1), directory)
