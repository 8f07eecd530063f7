"""The benchmarks, one file each, and the closed registry of their names."""
