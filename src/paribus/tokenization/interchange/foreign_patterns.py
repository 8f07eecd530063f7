"""Regular expressions that other libraries write for the pre-tokenizers that are ours."""

from paribus.tokenization.pretokenize.patterns import PATTERNS

_CL100K_TAIL = r"|\s*[\r\n]|\s+(?!\S)|\s+"
_SPELLINGS: dict[str, str] = {
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": "gpt2",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*" + _CL100K_TAIL: "gpt4",
}
PRETOKENIZER_OF_PATTERN = {pattern: name for name, pattern in PATTERNS.items()} | _SPELLINGS
"""Name of the pre-tokenizer that cuts every text as the pattern does. Llama 3's pattern is that of `gpt4`. Not here:
Qwen's (single digits), o200k's, and the later cl100k, whose `\\s++$` takes a line end with what whitespace follows it
at the end of a text, where the earlier one cuts."""
