"""What is refused before anything runs: values that are right by themselves and cannot work together."""
