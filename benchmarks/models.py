"""The tables of docs/models.md: the named sizes of the group `model`, and what papers state of theirs.

python benchmarks/models.py
"""

import sys
from pathlib import Path

import yaml
from pydantic import TypeAdapter
from tables import table

from paribus.config.groups.model import EncoderDecoderModel, ModelConfig
from paribus.config.units import format_count
from paribus.modeling.parameters import (
    embedding_parameters,
    flops_per_token,
    non_embedding_parameters,
    parameter_count,
    source_flops_per_token,
)

CONF = Path(__file__).resolve().parents[1] / "conf" / "model"
VOCABULARIES = (32_000, 64_000, 128_000)
KINDS = ("llama", "gpt_neox", "encoder_decoder")


STATED = (
    ("468m", "Scaffold-BPE, LBPE", 32_000, "468M", 468_000_000),
    ("1.2b", "Scaffold-BPE, LBPE", 32_000, "1.2B", 1_200_000_000),
    ("6.7b", "Scaffold-BPE, LBPE", 32_000, "6.7B", 6_700_000_000),
    ("in_context_0.3b", "In-Context Pretraining", 32_000, "0.3B", 300_000_000),
    ("in_context_0.7b", "In-Context Pretraining", 32_000, "0.7B", 700_000_000),
    ("in_context_1.5b", "In-Context Pretraining", 32_000, "1.5B", 1_500_000_000),
    ("in_context_7b", "In-Context Pretraining", 32_000, "7B", 7_000_000_000),
    ("pythia_410m", "Pythia", 50_304, "405,334,016", 405_334_016),
    ("pythia_1b", "Pythia", 50_304, "1,011,781,632", 1_011_781_632),
    ("wmt_base", "Vaswani et al. 2017, table 3", 37_000, "65M", 65_000_000),
    ("wmt_big", "Vaswani et al. 2017, table 3", 37_000, "213M", 213_000_000),
)
"""Of a size: the paper, its vocabulary, and its parameters as the paper prints them and as a number."""


def named_sizes() -> dict[str, ModelConfig]:
    """Every model of the group by its name."""
    adapter: TypeAdapter[ModelConfig] = TypeAdapter(ModelConfig)
    read = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CONF.glob("*.yaml"))}
    return {name: adapter.validate_python(fields) for name, fields in read.items()}


def sizes_table(sizes: dict[str, ModelConfig]) -> str:
    """Every named size: shape, parameters and embedding share at the papers' vocabulary sizes, FLOPs a token."""
    header = ["`model`", "`kind`", "layers", "width", "heads", "FFN", "context", "non-embedding"]
    header += [f"total at {size // 1000}K (embedding)" for size in VOCABULARIES] + ["GFLOPs a token at 32K"]
    ordered = sorted(
        sizes.items(), key=lambda item: (KINDS.index(item[1].kind), parameter_count(item[1], VOCABULARIES[0]))
    )
    return table(header, ([f"`{name}`", *cells(model)] for name, model in ordered))


def cells(model: ModelConfig) -> list[str]:
    """The row of a model behind its name."""
    encoder = isinstance(model, EncoderDecoderModel)
    layers = f"{model.encoder_layers} + {model.decoder_layers}" if encoder else str(model.layers)
    row = [model.kind, layers, *map(str, (model.width, model.heads, model.ffn_width)), f"{model.context_length:,}"]
    row.append(format_count(non_embedding_parameters(model, VOCABULARIES[0])))
    for size in VOCABULARIES:
        total = parameter_count(model, size)
        row.append(f"{format_count(total)} ({embedding_parameters(model, size) / total:.0%})")
    flops = f"{flops_per_token(model, VOCABULARIES[0]) / 1e9:.3g}"
    source = source_flops_per_token(model, VOCABULARIES[0])
    return [*row, f"{flops}, source {source / 1e9:.3g}" if source else flops]


def stated_table(sizes: dict[str, ModelConfig]) -> str:
    """The papers' stated parameter counts beside ours, and the difference in percent of theirs."""
    rows = []
    for name, source, vocab_size, text, parameters in STATED:
        counted = parameter_count(sizes[name], vocab_size)
        difference = f"{100 * (counted / parameters - 1):+.1f} %"
        rows.append((f"`{name}`", source, f"{vocab_size:,}", text, f"{counted:,}", difference))
    return table(["`model`", "source", "vocabulary", "stated", "counted", "difference"], rows)


if __name__ == "__main__":
    named = named_sizes()
    sys.stdout.write(f"{sizes_table(named)}\n{stated_table(named)}")
