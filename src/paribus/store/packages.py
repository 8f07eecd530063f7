"""Packages that can change the numbers of each stage, with the reason; no other can.

Runs are compared by these alone. A package can change a number where it computes in floating point, draws at random, or
holds a rule by which text is cut, normalized or scored. What only carries data, and has its content compared in another
way, cannot.
"""

from collections.abc import Mapping

PYTHON = "python"
"""Python itself, of which the minor version decides: patches change neither its Unicode nor its rules."""

PATCH = "python's patch version"

_ARITHMETIC = "its sums in floating point, in an order of its own"
_DRAWS = "its random streams, which may change between versions"
_SPELLS = "runs the language model by whose surprise the pre-tokenizer cuts"
_UNICODE = "its Unicode tables: what is a letter, a space or the lower case of another"
_CUTS = "its Unicode tables, by which text is cut into what is counted"
_FORWARD = "the model's forward pass"

FAISS = (
    "faiss",
    "faiss-cpu",
    "faiss-cuda",
    "faiss-gpu",
    "faiss-gpu-cu11",
    "faiss-gpu-cu12",
    "faiss-gpu-cu12-cuvs",
    "faiss-gpu-cu13-cuvs",
    "faiss-gpu-cuvs",
)
"""The distributions that provide the module faiss, each a build of its own; a build by another name goes unseen."""

_PRETOKENIZATION = {
    "torch": _SPELLS,
    "transformers": _SPELLS,
    "tokenizers": _SPELLS,
    "regex": _CUTS,
    "numpy": _ARITHMETIC,
}
_SCORING = {
    "torch": "the arithmetic of the forward pass",
    "transformers": _FORWARD,
    "lm-eval": "prompts, the choice of examples, and metrics",
    "sacrebleu": "BLEU",
    "sacremoses": "the tokens of tokenized BLEU",
    "rouge_score": "ROUGE",
    "numpy": _ARITHMETIC,
    PYTHON: "the examples it draws for prompts, and its Unicode tables in metrics",
}

DECIDING: Mapping[str, Mapping[str, str]] = {
    "corpus": {},
    "vocabulary": _PRETOKENIZATION | {"sentencepiece": "trains Unigram, in floating point"},
    "tokens": _PRETOKENIZATION,
    "embeddings": {
        "scikit-learn": "TF-IDF, its terms and its decomposition",
        "scipy": "the sparse products of TF-IDF",
        "torch": "the arithmetic of the encoder",
        "transformers": "the encoder",
        "tokenizers": "the encoder's tokens",
        "numpy": _ARITHMETIC,
        PYTHON: _UNICODE,
    },
    "neighbours": dict.fromkeys(FAISS, "its index, and distances in floating point") | {"numpy": _ARITHMETIC},
    "lexical_neighbours": {"scipy": "the sparse products of BM25", "numpy": _ARITHMETIC, PYTHON: _UNICODE},
    "duplicates": {"datasketch": "its hashes and permutations", "regex": _CUTS, "numpy": _ARITHMETIC, PYTHON: _UNICODE},
    "order": {"numpy": _DRAWS} | dict.fromkeys(FAISS, "the clusters of documents"),
    "contexts": {"numpy": _DRAWS},
    "context_statistics": {"numpy": _DRAWS},
    "training": {
        "torch": "the arithmetic and random numbers of training",
        "transformers": "the model of encoder_decoder",
        "accelerate": "how gradients and precision are handled",
        "numpy": _DRAWS,
    },
    "tasks": {"scipy": "the sparse products of BM25", "numpy": _ARITHMETIC, PYTHON: _UNICODE},
    "prompts": {},
    "evaluation": _SCORING,
    "token_statistics": _PRETOKENIZATION,
    "finetuning_data": {},
    "finetuning": _SCORING | {"accelerate": "how gradients and precision are handled"},
}
"""Deciding packages with their reasons, by stage.

None in `corpus`, whose documents are compared by their digest, whatever read them; nor in `prompts`, which no cell of a
table is made of; nor in `finetuning_data`, whose items are compared with the scores.
"""

HARMLESS: Mapping[str, str] = {
    "hydra-core": "composes the configuration, which is compared itself",
    "omegaconf": "composes the configuration, which is compared itself",
    "pydantic": "checks the configuration, which is compared itself",
    "annotated-types": "checks the configuration, which is compared itself",
    "mlflow": "shows runs and computes nothing",
    "rich": "shows runs and computes nothing",
    "jinja2": "shows reports and computes nothing",
    "matplotlib": "draws reports and computes nothing",
    "pandas": "holds the numbers of a report, which is made of all runs at once",
    "statsmodels": "adjusts the p-values of a report, which is made of all runs at once",
    "datasets": "carries documents and items, whose contents are compared",
    "pyarrow": "carries documents and scores, and gives back what it was given",
    "protobuf": "reads models of SentencePiece, and gives back what it was given",
    "safetensors": "carries weights, and gives back what it was given",
    PATCH: "mends Python and leaves its rules",
    "numba": "compiles loops whose every operation is fixed",
}
"""Dependencies that decide nothing in any stage, with their reasons."""


def deciding(stage: str) -> Mapping[str, str]:
    """The packages that can change a number of `stage`, with their reasons."""
    return DECIDING[stage]


def recorded() -> tuple[str, ...]:
    """Every package whose version is recorded, by name."""
    decisive = {name for packages in DECIDING.values() for name in packages} - {PYTHON}
    return tuple(sorted(decisive | set(HARMLESS) - {PATCH}))


def why_harmless(name: str) -> str:
    """Reason why a package changes nothing in a stage that it does not decide."""
    stages = [stage for stage, packages in DECIDING.items() if name in packages]
    return HARMLESS[name] if name in HARMLESS else f"decides {', '.join(stages)} only"


def minor(version: str) -> str:
    """Major and minor version of Python."""
    return ".".join(version.split(".")[:2])
