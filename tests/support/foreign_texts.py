"""Texts on which imported tokenizers are compared with the libraries that they come from."""

import random

LINES = [
    "The tokenizer cuts the text into tokens, and the tokens into the vocabulary that the trainer trained.",
    "Training tokenizers on trained text trains the training of text trainers in training, in 1998 and 2024.",
    "Der Tokenisierer zerlegt den Text in Wörter, und die Wörter in Teile von Wörtern - naïve Æsthetik (schön).",
    "分词器把文本切成词语，词语是文本的单位。文本的词语由分词器决定。 こんにちは世界。",
    "def train(self, text):\n    return self.trainer.train(text)\n\tself.tokens = [token for token in self.tokens]",
    'Не "text", but £5 – or €6; 100% of 11,000,111 + 0.5 = x1y2z3, up and <eop> too!? a < b > c [d] {e}',
] * 4
_CHARACTERS = (
    "  \t\n\u00a0\u3000\u2581abcdefghinorstuxyzABCT000111.,!?()\"'-–£€é½ﬁ①世界文本こЖ😀\u0301\u200b\0<eop>"
    "[UNK]##Iİßſ\ufffd"
)


def random_texts(number: int, seed: int = 0) -> list[str]:
    """Texts of few different characters, so that tokens have rivals, with what normalization changes among them."""
    draw = random.Random(seed)
    return ["".join(draw.choices(_CHARACTERS, k=draw.randint(0, 60))) for _ in range(number)]


TEXTS = [
    *LINES,
    " ".join(LINES),
    "",
    " ",
    "  two  spaces  ",
    "\u2581",
    "a" * 500,
    "a" * 101 + " " + "a" * 100,
    "</s><unk><0x0A><s>",
    "[CLS] a [SEP] ##ing [UNK]",
    *random_texts(4000),
]
