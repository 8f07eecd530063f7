"""Real text on which exported and imported tokenizers must agree: languages, emoji, code, and what breaks patterns."""

from support.real_data import RealData

EOS = "<|endoftext|>"
BEGINNINGS = (
    "All human beings are born free",
    "人人生而自由",
    "Alle Menschen sind frei",
    "सभी मनुष्यों",
    "يولد جميع الناس",
)
MARKED_UP = f"A {EOS} inside <unk> text, ##ing ## ing <0x41> and `{EOS}`"
OTHERS = [
    "",
    " ",
    MARKED_UP,
    "The capitals of the world, 1998.\n\n  indented  text isn't hard to READ'LL 12345678 \t x\x1cy\u3000z",
    "👩‍👩‍👧‍👦 🇩🇪🤷🏽‍♀️ e\u0301 naïve café 東京タワー \u200b\ufeff\x00",
    "def f(x: int) -> str:\n\tif x >= 10:\r\n        return f'{x!r}'  # aaaaa ------- ======\n\n\n    \n",
]


def real_texts(real_data: RealData) -> list[str]:
    """The declaration of human rights in five languages, and the others."""
    found = real_data.declaration_texts()
    chosen = [next(text for text in found if beginning in text)[:2000] for beginning in BEGINNINGS]
    return [*chosen, *OTHERS]
