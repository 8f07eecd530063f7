"""What the papers print, and where; shares and changes by thousands of tokens in the vocabulary, on the Pile.

Scaffold-BPE: Lian et al., arXiv 2404.17808. LBPE: Lian et al., arXiv 2411.05504.
"""

LENGTH_CHANGE = {"1-3": -0.0097, "4-6": 0.0037, "7-9": 0.0237, "10-12": 0.0224, "13-15": 0.0228}
"""Change of the occurrences of tokens of so many characters under LBPE (its Table II; 32K)."""
LBPE_BYTES_PER_TOKEN = {32: (3.4318, 3.4381), 64: (3.5777, 3.5812), 128: (3.6817, 3.6824)}
"""BPE and LBPE (its Table VI)."""

SCAFFOLD_SHARE = {32: 0.0607}
"""Of the tokens of the vocabulary of BPE, those that Scaffold-BPE marks (section 1)."""
FREQUENCY_RISE = {32: 0.7640, 64: 0.6858, 128: 0.5899}
"""Mean frequency of the tokens that replace scaffold tokens over that of the scaffold tokens, less one (Figure 5)."""
BYTES_PER_TOKEN = {"Pile": (3.879, 3.889), "WMT En-De": (4.830, 4.861), "WMT En-Fr": (5.012, 5.042)}
"""BPE and Scaffold-BPE (Table 6); the vocabulary is 32K on the Pile, and not stated for WMT."""
ENTROPY = (11.2382, 11.2443)
"""BPE and Scaffold-BPE, bits, on the Pile at 32K (Table 8); both agree with each other for |V| = 32,000."""
REDUNDANCY = (0.2491, 0.2487)
"""BPE and Scaffold-BPE, on the Pile at 32K (Table 8)."""
