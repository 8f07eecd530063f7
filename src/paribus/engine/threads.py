"""How processes are told how many threads they may have."""

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables of the environment, one of each library. Told apart, PyTorch takes as many as MKL may have."""
