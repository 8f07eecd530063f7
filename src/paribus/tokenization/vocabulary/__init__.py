"""What a tokenizer knows: every token ever made, in order of creation, and the files that hold it."""
