"""Compiled loops: numba makes object code once, llvmlite loads it ever after.

A kernel takes addresses and integers, allocates nothing, raises nothing and holds no lock. `registry` declares the
kernels, `build` compiles them, `native` loads them; the other modules hold their code and import numba, so they are
imported by `build` alone.
"""
