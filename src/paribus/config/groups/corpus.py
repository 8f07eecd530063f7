"""Group `corpus`: where the documents come from."""

from typing import Literal

from paribus.config.fields import (
    Fraction,
    NonNegative,
    Paths,
    PathText,
    Seed,
    Strings,
    config_class,
    execution,
    identity,
)
from paribus.config.units import ShareOrSize, Size

HELDOUT_DOC = "Share of documents held out for evaluation, chosen by a hash of the text, or of the group's name."
GROUP_DOC = (
    "that names the source, book or page a document is a piece of (a string or an integer): documents of one group are "
    "on one side of the split; null: each document is drawn by itself."
)
NEAR_DOC = (
    "A held-out document with more than this share of its 8-grams of words in one training document moves to training, "
    "and with it its near copies and its group; null: none moves."
)
SAMPLE_DOC = (
    "Training documents that are kept, chosen by a hash of the text: a share of them (0.25), or as many as have this "
    "much text (500MB, of pairs that of the targets; `${budget.text}` with budget=equal_text), so that a budget "
    "reads the same documents in every order; null keeps all. It is a random sample of the whole source, not its "
    "beginning. Held-out documents that move to training, as near copies of it, come on top."
)
SAMPLE_SEED_DOC = (
    "Of the hash by which corpus.sample chooses: another seed is another sample, for every run of a sweep."
)
LIMIT_DOC = (
    "Read up to this many bytes of text in corpus order (UTF-8, both splits together), of which corpus.sample then "
    "chooses; null reads everything."
)


@config_class
class PydocsCorpus:
    """The documentation strings inside installed Python packages, read with `ast` and never imported."""

    kind: Literal["pydocs"] = identity("pydocs", doc="Docstrings of installed packages.")
    packages: Strings = identity(
        ("numpy", "scipy", "pandas", "scikit-learn", "torch", "transformers", "matplotlib"),
        doc="Distribution names, read in this order; their versions are part of the corpus' identity.",
    )
    min_bytes: NonNegative = identity(200, doc="Shorter docstrings are not documents (UTF-8 bytes).")
    group_field: Literal["file", "package"] | None = identity(
        "file",
        doc="Docstrings of one file, or of one package, are on one side of the split; null: each is drawn by itself.",
    )
    limit: Size | None = identity(None, doc=LIMIT_DOC)
    sample: ShareOrSize | None = identity(None, doc=SAMPLE_DOC)
    sample_seed: Seed = identity(0, doc=SAMPLE_SEED_DOC)
    heldout: Fraction = identity(0.05, doc=HELDOUT_DOC)
    near_duplicate: Fraction | None = identity(0.8, doc=NEAR_DOC)


@config_class
class FilesCorpus:
    """Text files: .jsonl (or .json, an object a line), .parquet or .txt, plain or with .gz, .zst or .bz2."""

    kind: Literal["files"] = identity("files", doc="Files on this machine.")
    paths: Paths = execution(
        doc="Paths or glob patterns; names and contents of the files are the identity, folders are not."
    )
    text_field: str = identity("text", doc="Field or column that holds the text (.jsonl, .parquet).")
    id_field: str | None = identity(None, doc="Field or column that holds a unique document id; null numbers them.")
    group_field: str | None = identity(None, doc=f"Field or column {GROUP_DOC} Plain text has the field `file`.")
    txt_document: Literal["file", "line", "paragraph"] = identity("file", doc="What one document is in a .txt file.")
    on_invalid: Literal["error", "skip"] = identity(
        "error",
        doc="Stop at an unreadable record or a text file without a document, or skip it and count it in the corpus' "
        "record.",
    )
    limit: Size | None = identity(None, doc=LIMIT_DOC)
    sample: ShareOrSize | None = identity(None, doc=SAMPLE_DOC)
    sample_seed: Seed = identity(0, doc=SAMPLE_SEED_DOC)
    heldout: Fraction = identity(0.05, doc=HELDOUT_DOC)
    near_duplicate: Fraction | None = identity(0.8, doc=NEAR_DOC)


@config_class
class HuggingFaceCorpus:
    """A data set of the Hugging Face hub (streamed) or a data set directory on this machine."""

    kind: Literal["huggingface"] = identity("huggingface", doc="A `datasets` data set.")
    name: PathText = identity(doc="Hub name (owner/name) or a local directory.")
    subset: str | None = identity(None, doc="The data set's configuration name, when it has several.")
    split: str = identity("train", doc="Split to read.")
    revision: str | None = identity(None, doc="Commit of the data set; required for a hub name, to rerun a table.")
    text_field: str = identity("text", doc="Column that holds the text.")
    id_field: str | None = identity(None, doc="Column that holds a unique document id; null numbers them.")
    group_field: str | None = identity(None, doc=f"Column {GROUP_DOC}")
    on_invalid: Literal["error", "skip"] = identity("error", doc="Stop at an unreadable record, or skip and count it.")
    limit: Size | None = identity(None, doc=LIMIT_DOC)
    sample: ShareOrSize | None = identity(None, doc=SAMPLE_DOC)
    sample_seed: Seed = identity(0, doc=SAMPLE_SEED_DOC)
    heldout: Fraction = identity(0.05, doc=HELDOUT_DOC)
    near_duplicate: Fraction | None = identity(0.8, doc=NEAR_DOC)


@config_class
class ParallelCorpus:
    """Pairs of source and target: aligned text files as WMT and OPUS have them, or records with two fields."""

    kind: Literal["parallel"] = identity("parallel", doc="Pairs of source and target, for encoder_decoder.")
    source: Paths = execution(
        doc="Paths or glob patterns of the sources' files, whose names and contents are the identity: .jsonl and "
        ".parquet hold records, any other is text, a pair a line; plain or with .gz, .zst or .bz2."
    )
    target: Paths | None = execution(
        None, doc="The same of the targets, record by record or line by line; null: records of the sources' files."
    )
    source_field: str = identity("source", doc="Field or column that holds the source (.jsonl, .parquet).")
    target_field: str = identity("target", doc="Field or column that holds the target (.jsonl, .parquet).")
    group_field: str | None = identity(
        None, doc=f"Field or column of the sources {GROUP_DOC} Plain text has the field `file`."
    )
    source_language: str | None = execution(
        None,
        doc="Code of the sources' language (en), by which the direction of a translation test set is checked; null: "
        "the suffix of the text files, or source_field of records.",
    )
    target_language: str | None = execution(None, doc="The same of the targets.")
    on_invalid: Literal["error", "skip"] = identity(
        "error",
        doc="Stop at a pair with an empty or unreadable side or a file without a pair, or skip it and count it in the "
        "corpus' record.",
    )
    limit: Size | None = identity(None, doc=f"{LIMIT_DOC} Sources and targets count.")
    sample: ShareOrSize | None = identity(None, doc=SAMPLE_DOC)
    sample_seed: Seed = identity(0, doc=SAMPLE_SEED_DOC)
    heldout: Fraction = identity(
        0.05, doc="Share of pairs held out for evaluation, chosen by a hash of the source, or of the group's name."
    )
    near_duplicate: Fraction | None = identity(0.8, doc=f"{NEAR_DOC} Both sides of a pair count.")

    def languages(self) -> tuple[str | None, str | None]:
        """Languages of sources and targets, None for what nothing tells."""
        return (
            self.source_language or _language(self.source, self.source_field, "source"),
            self.target_language or _language(self.target or self.source, self.target_field, "target"),
        )


def _language(paths: tuple[str, ...], field: str, unnamed: str) -> str | None:
    """Suffix of all text files, or the field of records unless it is called `unnamed`."""
    stems = [path.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2") for path in paths]
    suffixes = {stem.rpartition(".")[2] if "." in stem else "" for stem in stems}
    if suffixes <= {"jsonl", "json", "parquet"}:
        return None if field == unnamed else field
    suffix = suffixes.pop()
    return suffix if not suffixes and suffix not in ("", "txt") else None


CorpusConfig = PydocsCorpus | FilesCorpus | HuggingFaceCorpus | ParallelCorpus
