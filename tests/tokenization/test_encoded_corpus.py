"""The tokens artefact: streamed in, memory-mapped out, refused when broken."""

from pathlib import Path

import numpy as np
import pytest

from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus, EncodedCorpusWriter, id_dtype


@pytest.fixture
def tok() -> Tokenizer:
    return Tokenizer.train([], algorithm="bytes", special_tokens=["<eos>"])


def test_documents_come_back_in_order_from_memory_mapped_files(tmp_path: Path, tok: Tokenizer) -> None:
    with EncodedCorpusWriter(tmp_path, tok) as writer:
        for batch in (["ab", "", "é"], ["xyz"]):
            ids, offsets = tok.encode_batch(batch)
            writer.append(ids, np.diff(offsets), np.array([len(text.encode()) for text in batch]))
        assert (writer.documents, writer.tokens) == (4, 7)
    corpus = EncodedCorpus(tmp_path)
    assert (len(corpus), corpus.tokens, corpus.tokenizer.eos_id) == (4, 7, 256)
    assert [tok.decode(corpus.document(n)) for n in range(4)] == ["ab", "", "é", "xyz"]
    assert corpus.offsets.tolist() == [0, 2, 2, 4, 7]
    assert corpus.source_bytes.tolist() == [2, 0, 2, 3]
    assert isinstance(corpus.ids, np.memmap)
    assert np.load(tmp_path / "ids.npy").dtype == np.uint16
    assert (id_dtype(65_536), id_dtype(65_537)) == (np.uint16, np.uint32)
