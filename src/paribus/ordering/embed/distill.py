"""Make static token embeddings from an encoder, as Model2Vec does (Tulkens and van Dongen, 2024).

    python -m paribus.ordering.embed.distill ENCODER OUTPUT [--dimensions 256]

Each token of the vocabulary goes through the encoder by itself, between its special tokens; principal components
shorten the vectors, and weights of smooth inverse frequency (Arora et al., 2017) make frequent tokens count less.
Frequencies are Zipf's: the rank of a token is its place in the vocabulary. The result is what `embedder=static
embedder.path=OUTPUT` reads.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from paribus.config.groups.embedding import TransformersEmbedder
from paribus.errors import ConfigurationError, DataError, ParibusError
from paribus.ordering.embed.directory import STATIC_TOKENIZER, STATIC_WEIGHTS, embedder_directory, minilm_directory
from paribus.ordering.embed.encoder import DocumentEncoder
from paribus.store import atomic

UNUSED = re.compile(r"\[unused\d+\]")
SIF = 1e-4
FIRST_RANK = 2
BATCH = 256
MINILM = "minilm"


def distill(encoder: str, output: Path, *, dimensions: int = 256, device: str = "auto") -> None:
    """Write the static embeddings of directory `encoder` (or of the installed MiniLM: `minilm`) to `output`.

    `dimensions` is the length of a vector; an encoder's own is taken where it is shorter. Raises ConfigurationError
    where `output` is there already, and as `Encoder` does.
    """
    if dimensions < 1:
        raise ConfigurationError(f"--dimensions {dimensions}: a vector has one or more")
    if output.exists():
        raise ConfigurationError(f"{output} exists already; name a directory that does not")
    config = _one_token_at_a_time(encoder, device)
    opened = DocumentEncoder(minilm_directory() if encoder == MINILM else embedder_directory(config), config)
    tokens = sorted(opened.tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    special = set(opened.tokenizer.all_special_ids)
    kept = [token for text, token in tokens if token not in special and not UNUSED.fullmatch(text)]
    if not kept:
        raise DataError(f"{encoder}: its vocabulary has no tokens but special ones")
    vectors = np.zeros((tokens[-1][1] + 1, min(dimensions, opened.dimensions, len(kept))), dtype=np.float16)
    vectors[kept] = _shortened(token_vectors(opened, kept), vectors.shape[1]) * zipf_weights(len(kept))[:, None]
    _write(output, vectors, opened)


def _one_token_at_a_time(encoder: str, device: str) -> TransformersEmbedder:
    return TransformersEmbedder(
        kind="transformers",
        path=encoder,
        revision=None,
        pooling="mean",
        max_tokens=1,
        max_chunks=1,
        batch_tokens=3 * BATCH,
        precision="fp32",
        device=device,
    )


def token_vectors(encoder: DocumentEncoder, tokens: Sequence[int]) -> npt.NDArray[np.float64]:
    """Mean of the states of each token and the special ones around it, (tokens, hidden size)."""
    example = encoder.tokenizer("a", return_special_tokens_mask=True)
    ids, mask = example["input_ids"], example["special_tokens_mask"]
    before = mask.index(0) if 0 in mask else len(mask)
    after = len(mask) - mask[::-1].index(0) if 0 in mask else len(mask)
    chunks = [[*ids[:before], token, *ids[after:]] for token in tokens]
    return encoder.sums(len(chunks), list(range(len(chunks))), chunks)


def zipf_weights(count: int) -> npt.NDArray[np.float64]:
    """Weights a / (a + p) of tokens of ranks 2, 3, ..., whose probability p is proportional to 1 / rank."""
    probability = 1 / np.arange(FIRST_RANK, count + FIRST_RANK)
    return np.asarray(SIF / (SIF + probability / probability.sum()))


def _shortened(vectors: npt.NDArray[np.float64], dimensions: int) -> npt.NDArray[np.float64]:
    with threadpool_limits(1):
        return np.asarray(PCA(dimensions, svd_solver="covariance_eigh").fit_transform(vectors))


def _write(output: Path, vectors: npt.NDArray[np.float16], encoder: DocumentEncoder) -> None:
    with atomic.replacing(output) as aside:
        aside.mkdir(parents=True)
        save_file({"embeddings": vectors}, aside / STATIC_WEIGHTS)
        tokenizer = Tokenizer.from_str(encoder.tokenizer.backend_tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.save(str(aside / STATIC_TOKENIZER), pretty=False)
        atomic.write_json(aside / "config.json", _description(vectors))


def _description(vectors: npt.NDArray[np.float16]) -> dict[str, Any]:
    """What Model2Vec's own reader expects beside the tensors."""
    return {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": vectors.shape[1],
        "apply_pca": vectors.shape[1],
        "sif_coefficient": SIF,
        "normalize": True,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit code, 1 where it cannot be done."""
    parser = argparse.ArgumentParser("python -m paribus.ordering.embed.distill", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("encoder", help="directory of an encoder, or minilm for the installed one")
    parser.add_argument("output", type=Path, help="directory to make")
    parser.add_argument("--dimensions", type=int, default=256, help="length of a vector (default: 256)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    given = parser.parse_args(arguments)
    try:
        distill(given.encoder, given.output, dimensions=given.dimensions, device=given.device)
    except ParibusError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
