"""From text to the ids that a model scores: pairs of context and continuation, one rule for every tokenizer."""
