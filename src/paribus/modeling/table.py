"""The tables of `docs/models.md`: `python -m paribus.modeling.table` prints them."""

import sys
from collections.abc import Iterable, Sequence

from paribus.config.groups.model import EncoderDecoderModel, ModelConfig
from paribus.config.reference.files import configuration_directory
from paribus.config.units import format_count
from paribus.modeling.counts import (
    embedding_share,
    flops_per_token,
    non_embedding_parameters,
    parameter_count,
    source_flops_per_token,
)
from paribus.modeling.sizes import STATED, named_sizes

VOCABULARIES = (32_000, 64_000, 128_000)
KINDS = ("llama", "gpt_neox", "encoder_decoder")


def sizes_table(sizes: dict[str, ModelConfig]) -> str:
    """Every named size: shape, parameters and embedding share at the papers' vocabulary sizes, FLOPs a token."""
    header = ["`model`", "`kind`", "layers", "width", "heads", "FFN", "context", "non-embedding"]
    header += [f"total at {size // 1000}K (embedding)" for size in VOCABULARIES] + ["GFLOPs a token at 32K"]
    ordered = sorted(sizes, key=lambda name: (KINDS.index(sizes[name].kind), _total(sizes[name])))
    return _markdown(header, ([f"`{name}`", *_cells(sizes[name])] for name in ordered))


def _total(model: ModelConfig) -> int:
    return parameter_count(model, VOCABULARIES[0])


def _cells(model: ModelConfig) -> list[str]:
    totals = [
        f"{format_count(parameter_count(model, size))} ({embedding_share(model, size):.0%})" for size in VOCABULARIES
    ]
    shape = [model.kind, _layers(model), *map(str, (model.width, model.heads, model.ffn_width))]
    non_embedding = format_count(non_embedding_parameters(model, VOCABULARIES[0]))
    return [*shape, f"{model.context_length:,}", non_embedding, *totals, _flops(model)]


def _layers(model: ModelConfig) -> str:
    if isinstance(model, EncoderDecoderModel):
        return f"{model.encoder_layers} + {model.decoder_layers}"
    return str(model.layers)


def _flops(model: ModelConfig) -> str:
    target = f"{flops_per_token(model, VOCABULARIES[0]) / 1e9:.3g}"
    source = source_flops_per_token(model, VOCABULARIES[0])
    return f"{target}, source {source / 1e9:.3g}" if source else target


def stated_table(sizes: dict[str, ModelConfig]) -> str:
    """The papers' stated parameter counts beside ours, and the difference in percent of theirs."""
    header = ["`model`", "source", "vocabulary", "stated", "counted", "difference"]
    rows = []
    for stated in STATED:
        counted = parameter_count(sizes[stated.name], stated.vocab_size)
        difference = f"{100 * (counted / stated.parameters - 1):+.1f} %"
        rows.append(
            [f"`{stated.name}`", stated.source, f"{stated.vocab_size:,}", stated.text, f"{counted:,}", difference]
        )
    return _markdown(header, rows)


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tables() -> str:
    """Both tables, an empty line between them."""
    sizes = named_sizes(configuration_directory() / "model")
    return f"{sizes_table(sizes)}\n{stated_table(sizes)}"


if __name__ == "__main__":
    sys.stdout.write(tables())
