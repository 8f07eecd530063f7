"""What is scored: items of benchmarks, held-out text and pairs, made before any model is trained."""
