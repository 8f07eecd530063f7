"""Numbers that Python and the kernels agree on."""

PATTERNS = ("gpt2", "gpt2_digits", "gpt4", "whitespace", "stripped", "none")
GPT2, GPT2_DIGITS, GPT4, WHITESPACE, STRIPPED, NONE = range(6)
