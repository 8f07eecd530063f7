"""Tokenizers beside paribus, and the process in which one of them encodes or learns: `tokenizer_peers.py JOB RESULT`.

Each is imported by the function that uses it. All but sentencepiece encode with the vocabulary that paribus trained.
"""

import base64
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

SEPARATOR = "<|end of document|>"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DROPOUT = 0.1
DOCUMENTS_A_CALL = 1000
"""For peers that return an object for each document."""

Ids = Any
"""An array of integers. NumPy is imported where ids are made: the process of a learner is not to wait for it."""
Merges = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Contestant:
    """`package` says which function encodes or learns, with `options`.

    `ids` says what its ids must do: `equal` those of the reference, `decode` to the text, or nothing (`own`
    vocabulary). `slow` ones encode only the first documents.
    """

    name: str
    package: str
    options: dict[str, Any] = field(default_factory=dict)
    ids: str = "equal"
    slow: bool = False


def of_paribus(encoder: str, vocabulary: str = "bpe", ids: str = "decode", **options: Any) -> Contestant:
    """An encoder of paribus with one of its vocabularies."""
    name = " ".join(["paribus", encoder, *map(str, options.values())])
    name += ", Scaffold-BPE" if vocabulary == "scaffold_bpe" else ""
    return Contestant(name, "paribus", {"vocabulary": vocabulary, "encoder": encoder, **options}, ids)


ENCODERS = (
    of_paribus("merge_rank", ids="equal"),
    of_paribus("longest_first"),
    of_paribus("merge_rank", "scaffold_bpe"),
    of_paribus("longest_first", "scaffold_bpe"),
    of_paribus("left_to_right"),
    of_paribus("fewest"),
    of_paribus("viterbi", "unigram"),
    of_paribus("dropout", dropout=DROPOUT),
    Contestant("gigatoken", "gigatoken"),
    Contestant("gigatoken, one buffer", "gigatoken", {"buffer": True}),
    Contestant("tiktoken", "tiktoken", slow=True),
    Contestant("tokenizers", "tokenizers", slow=True),
    Contestant(f"tokenizers, dropout {DROPOUT}", "tokenizers", {"dropout": DROPOUT}, "decode", slow=True),
    Contestant("sentencepiece bpe", "sentencepiece", {"model": "bpe"}, "own", slow=True),
    Contestant("sentencepiece unigram", "sentencepiece", {"model": "unigram"}, "own", slow=True),
)
LEARNERS = (
    Contestant("paribus BPE", "paribus", {"algorithm": "bpe"}),
    Contestant("paribus Scaffold-BPE", "paribus", {"algorithm": "scaffold_bpe"}),
    Contestant("gigabpe", "gigabpe"),
    Contestant("gigatoken", "gigatoken"),
    Contestant("tokenizers", "tokenizers"),
    Contestant("sentencepiece bpe", "sentencepiece"),
)
IN_BYTE_ORDER = Contestant("tokenizers, alphabet in byte order", "tokenizers", {"in_byte_order": True})
BY_LINES = Contestant("tokenizers, lines as documents", "tokenizers", {"lines": True})


@dataclass(frozen=True, slots=True)
class Text:
    """Documents in a directory: ended by a newline in one file, and with a separator between them in another."""

    directory: Path

    @property
    def lines(self) -> Path:
        """All documents, each ended by a newline."""
        return self.directory / "lines.txt"

    @property
    def separated(self) -> Path:
        """All documents with `SEPARATOR` between them."""
        return self.directory / "separated.txt"

    @classmethod
    def write(cls, documents: Iterable[str], directory: Path, megabytes: float | None) -> "Text":
        """Store documents, the first ones that together reach `megabytes`."""
        directory.mkdir(parents=True)
        text, sizes = cls(directory), []
        with text.lines.open("wb") as lines, text.separated.open("wb") as separated:
            for document in documents:
                if megabytes is not None and sum(sizes) >= megabytes * 1e6:
                    break
                data = document.encode()
                assert SEPARATOR.encode() not in data
                separated.write(SEPARATOR.encode() + data if sizes else data)
                lines.write(data + b"\n")
                sizes.append(len(data))
        (directory / "sizes.json").write_text(json.dumps(sizes))
        return text

    def sizes(self, megabytes: float | None = None) -> list[int]:
        """UTF-8 bytes of each document, or of the first ones that together reach `megabytes`."""
        sizes: list[int] = json.loads((self.directory / "sizes.json").read_text())
        starts = accumulate(sizes, initial=0)
        return [
            size for size, start in zip(sizes, starts, strict=False) if megabytes is None or start < megabytes * 1e6
        ]

    def documents(self, megabytes: float | None = None) -> Iterator[str]:
        """The documents with these sizes."""
        with self.lines.open("rb") as file:
            for size in self.sizes(megabytes):
                yield file.read(size + 1)[:-1].decode()


@dataclass(frozen=True, slots=True)
class Job:
    """What a process does: `encode` with one of `ENCODERS`, or `train` with one of `LEARNERS`.

    Encoding makes one pass over the first `megabytes` and then `passes` over `copies` of them; `sample` megabytes are
    those whose ids are compared.
    """

    kind: str
    contestant: Contestant
    text: str
    cores: int
    vocabulary: str = ""
    """Directory of vocabularies."""
    megabytes: float | None = None
    copies: int = 1
    passes: int = 5
    sample: float = 10.0
    size: int = 0
    """Tokens of the vocabulary that is trained."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """`batch` takes what `prepare` made of the texts; preparing is not measured and mostly does nothing."""

    batch: Callable[[Any], Ids]
    decode: Callable[[Ids], str] | None = None
    prepare: Callable[[list[str]], Any] = list


def encoder_of(job: Job) -> Encoder:
    """The contestant's encoder, which has encoded a short string, so that what is loaded late is loaded."""
    made: dict[str, Callable[..., Encoder]] = {
        "paribus": paribus_encoder,
        "tokenizers": tokenizers_encoder,
        "tiktoken": tiktoken_encoder,
        "gigatoken": gigatoken_encoder,
        "sentencepiece": sentencepiece_encoder,
    }
    encoder = made[job.contestant.package](Path(job.vocabulary), job.cores, **job.contestant.options)
    encoder.batch(encoder.prepare(["Ready? 1, 2, 3."]))
    return encoder


def paribus_encoder(directory: Path, threads: int, vocabulary: str, encoder: str, **options: float) -> Encoder:
    """`encode_batch` of a vocabulary with an encoder and its options."""
    from paribus.tokenization import Tokenizer

    tokenizer = Tokenizer.load(directory / vocabulary)
    if encoder != tokenizer.settings.encoder:
        tokenizer = tokenizer.with_encoder(encoder, **options)  # type: ignore[arg-type]
    return Encoder(lambda texts: tokenizer.encode_batch(texts, threads=threads)[0], tokenizer.decode)


def tokenizers_encoder(directory: Path, threads: int, dropout: float | None = None) -> Encoder:
    """`encode_batch_fast`, which makes no offsets."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    if dropout is not None:
        tokenizer.model.dropout = dropout

    def batch(texts: list[str]) -> Ids:
        starts = range(0, len(texts), DOCUMENTS_A_CALL)
        parts = (tokenizer.encode_batch_fast(texts[start : start + DOCUMENTS_A_CALL]) for start in starts)
        return joined(item.ids for item in chain.from_iterable(parts))

    return Encoder(batch, lambda ids: tokenizer.decode(ids.tolist()))


def tiktoken_encoder(directory: Path, threads: int) -> Encoder:
    """Straight to arrays on one core; `encode_ordinary_batch` on more."""
    import tiktoken

    lines = (directory / "vocabulary.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    encoding = tiktoken.Encoding("paribus", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})

    def batch(texts: list[str]) -> Ids:
        if threads == 1:
            return joined(encoding.encode_to_numpy(text, disallowed_special=()) for text in texts)
        return joined(encoding.encode_ordinary_batch(texts, num_threads=threads))

    return Encoder(batch)


def gigatoken_encoder(directory: Path, threads: int, buffer: bool = False) -> Encoder:
    """`encode_batch` of the texts, or of one buffer that holds them all with a separator between them."""
    import awkward
    import gigatoken
    import numpy as np

    tokenizer = gigatoken.Tokenizer(directory / "tokenizer.json")

    def batch(texts: Any) -> Ids:
        return np.asarray(awkward.flatten(tokenizer.encode_batch(texts, parallel=threads > 1)))

    def one_buffer(texts: list[str]) -> Any:
        return gigatoken.BytesSource(SEPARATOR.join(texts).encode(), SEPARATOR)

    return Encoder(batch, prepare=one_buffer if buffer else list)


def sentencepiece_encoder(directory: Path, threads: int, model: str) -> Encoder:
    """`encode` to arrays; its own vocabulary, which knows no pre-tokens."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / f"sentencepiece.{model}"))
    return Encoder(lambda texts: joined(processor.encode(texts, out_type="numpy", num_threads=threads)))


def joined(parts: Iterable[Ids]) -> Ids:
    """One array."""
    import numpy as np

    return np.concatenate([np.asarray(part, dtype=np.uint32) for part in parts])


def paribus_learner(text: Text, size: int, threads: int, output: Path, algorithm: Any) -> Callable[[], Merges]:
    """`Tokenizer.train` and `save`."""
    from paribus.tokenization import Tokenizer

    tokenizer = Tokenizer.train(
        text.documents(), algorithm=algorithm, vocab_size=size, pretokenizer="gpt2", threads=threads
    )
    tokenizer.save(output)
    return lambda: tokenizer.merges


def tokenizers_learner(
    text: Text, size: int, threads: int, output: Path, *, lines: bool = False, in_byte_order: bool = False
) -> Callable[[], Merges]:
    """`train_from_iterator` with the pre-tokens of GPT-2, of the documents or of their lines.

    Equal counts are settled by the order of the alphabet, which is that of GPT-2's characters; `in_byte_order`, each
    byte is a character of its own place in the order of bytes, and pre-tokens are made by `regex`.
    """
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    texts = text.lines.open(encoding="utf-8", newline="\n") if lines else text.documents()
    tokenizer, alphabet = tokenizers.Tokenizer(models.BPE()), pre_tokenizers.ByteLevel.alphabet()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if in_byte_order:
        import regex

        first, find = 0x4E00, regex.compile(GPT2).findall
        spelling = dict(enumerate(range(first, first + 256))) | {0: ord(" ")}
        texts = ("\0".join(find(one)).encode().decode("latin-1").translate(spelling) for one in text.documents())
        alphabet = [chr(first + byte) for byte in range(256)]
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(output))

    def merges() -> Merges:
        found = json.loads(tokenizer.to_str())["model"]["merges"]
        values = {character: byte for byte, character in enumerate(alphabet)} if in_byte_order else byte_values()
        return in_bytes(found, values)

    return merges


def gigabpe_learner(text: Text, size: int, threads: int, output: Path) -> Callable[[], Merges]:
    """`train_bpe`, which reads the file itself, line by line. Bytes that do not occur are not in its vocabulary."""
    import gigabpe

    vocabulary, merges = gigabpe.train_bpe([str(text.lines)], size, pretokenizer="bytelevel", threads=threads)
    output.write_text(json.dumps([vocabulary, merges]))
    return lambda: in_bytes(merges, byte_values())


def gigatoken_learner(text: Text, size: int, threads: int, output: Path) -> Callable[[], Merges]:
    """`train_bpe` on a file, the separator being its special token and one more in the size."""
    import gigatoken

    file, separator = str(text.separated), SEPARATOR.encode()
    _, merges = gigatoken.train_bpe(file, size + 1, [SEPARATOR], tie_breaking="huggingface", separator=separator)
    output.write_text(json.dumps([[left.hex(), right.hex()] for left, right in merges]))
    return lambda: merges


def sentencepiece_learner(
    text: Text, size: int, threads: int, output: Path, model: str = "bpe"
) -> Callable[[], Merges]:
    """Train on the lines, none of them too long, no text normalized; it gives no merges."""
    import sentencepiece

    with output.open("wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            input=str(text.lines),
            model_writer=writer,
            model_type=model,
            vocab_size=size,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=1.0,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=1 << 24,
            num_threads=threads,
            minloglevel=2,
        )
    return list


def in_bytes(merges: Iterable[Iterable[str]], values: dict[str, int]) -> Merges:
    """Merges of the bytes that their characters stand for."""
    return [tuple(bytes(map(values.__getitem__, token)) for token in pair) for pair in merges]  # type: ignore[misc]


def byte_values() -> dict[str, int]:
    """The byte that each character of GPT-2's alphabet stands for."""
    from paribus.tokenization.vocabulary import byte_characters

    return {character: byte for byte, character in enumerate(byte_characters())}


def encode(job: Job) -> dict[str, Any]:
    """A cold pass over the texts, warm passes over copies of them, then digests of the ids."""
    import numpy as np

    text = Text(Path(job.text))
    texts, encoder = list(text.documents(job.megabytes)), encoder_of(job)
    once, copies = encoder.prepare(texts), encoder.prepare(texts * job.copies)
    seconds, digests = [], set()
    for number in range(1 + job.passes):
        began = time.perf_counter()
        ids = encoder.batch(copies if number else once)
        seconds.append(time.perf_counter() - began)
        digests.add(digest_of(ids[: len(ids) // (job.copies if number else 1)]))
        del ids
    measured = {"seconds": seconds, "peak": peak_mib(), "digests": sorted(digests)}
    sample = list(text.documents(job.sample))
    ids = np.asarray(encoder.batch(encoder.prepare(sample)))
    decodes = encoder.decode is None or encoder.decode(ids) == "".join(sample)
    return measured | {"digest": digest_of(ids), "decodes": decodes}


def train(job: Job, output: Path) -> dict[str, Any]:
    """Train and save; then, aside, what was learned is brought into one form."""
    learners: dict[str, Callable[..., Callable[[], Merges]]] = {
        "paribus": paribus_learner,
        "tokenizers": tokenizers_learner,
        "gigabpe": gigabpe_learner,
        "gigatoken": gigatoken_learner,
        "sentencepiece": sentencepiece_learner,
    }
    package, options = job.contestant.package, job.contestant.options
    import_module("paribus.tokenization" if package == "paribus" else package)
    began = time.perf_counter()
    learned = learners[package](Text(Path(job.text)), job.size, job.cores, output, **options)
    seconds, peak = time.perf_counter() - began, peak_mib()
    aside, aside_cpu = time.perf_counter(), time.process_time()
    merges = [[left.hex(), right.hex()] for left, right in learned()]
    spent = {"aside": time.perf_counter() - aside, "aside_cpu": time.process_time() - aside_cpu}
    return {"seconds": seconds, "peak": peak, "merges": merges} | spent


def peak_mib() -> float:
    """The most memory that this process has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def digest_of(ids: Ids) -> str:
    """SHA-256 of ids, taken in pieces, not to add to the peak of memory."""
    import numpy as np

    digest, piece = hashlib.sha256(), 1 << 20
    for start in range(0, len(ids), piece):
        digest.update(np.ascontiguousarray(ids[start : start + piece], dtype=np.uint32).data)
    return digest.hexdigest()[:16]


def main(job: Job, result: Path) -> None:
    """Do the job and write what was measured."""
    measured = encode(job) if job.kind == "encode" else train(job, result.with_name("trained"))
    result.write_text(json.dumps({"aside": 0.0, "aside_cpu": 0.0} | measured))


if __name__ == "__main__":
    read = json.loads(sys.argv[1])
    main(Job(**read | {"contestant": Contestant(**read["contestant"])}), Path(sys.argv[2]))
