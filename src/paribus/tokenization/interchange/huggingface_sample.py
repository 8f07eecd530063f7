"""Text on which an exported tokenizer must give the ids of the original before it is handed out."""

from typing import TYPE_CHECKING

import numpy as np

from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary.vocabulary import SPECIAL, UNKNOWN

if TYPE_CHECKING:
    import tokenizers


TEXTS = (
    "",
    " ",
    "All human beings are born free and equal in dignity and rights; they're endowed with reason. (1948)\n\n",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straßenbahn-Übergänge für 1.250,50 €.",
    "人人生而自由，在尊严和权利上一律平等。東京タワーは333メートルです。모든 인간은 태어날 때부터 자유로우며.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق ١٢٣. כל בני אדם נולדו בני חורין.",
    "def f(x: int) -> str:\n\treturn {'a': [x ** 2, 0xFF]}  # isn't it?\r\n\r\n\r\n    ##x ## y\n \n\t\n",
    "👩‍👩‍👧‍👦 🇩🇪🤷🏽‍♀️ e\u0301 ﬁ Ǆ ſ'S 'LL I'Ve \u200b\ufeff\x00\x07\x1c\x85\xa0\u2003\u3000z",
    "aaa aaaa aaaaa ---- --- 0000000 1234567 ............ ((((( !!!!!!!!!  \n   \n\n\n      x",
    "<unk> <0x41> ▁ Ġ ## <|endoftext|>",
)
_TOKENS, _TOGETHER = 8192, 64


def sample(tok: TextTokenizer) -> list[str]:
    """Text of several scripts, runs, white space and code, and the vocabulary's own tokens in a fixed random order."""
    kinds = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id]
    ordinary = np.flatnonzero((kinds != SPECIAL) & (kinds != UNKNOWN))
    drawn = np.random.default_rng(0).choice(ordinary, size=_TOKENS)
    own = [tok.decode(drawn[begin : begin + _TOGETHER]) for begin in range(0, _TOKENS, _TOGETHER)]
    return [*TEXTS, *own, *tok.settings.special_tokens]


def disagreement(tok: TextTokenizer, backend: "tokenizers.Tokenizer") -> str | None:
    """The first text of the sample to which `backend` gives other ids than `tok`, or None."""
    texts = sample(tok)
    backend.encode_special_tokens = True
    for text, encoding in zip(texts, backend.encode_batch(texts, add_special_tokens=False), strict=True):
        if encoding.ids != tok.encode(text).tolist():
            return text
    return None
