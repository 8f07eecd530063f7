"""Compiled loops: numba makes object code once, llvmlite loads it ever after.

A kernel takes addresses and integers, allocates nothing and raises nothing, and runs without the interpreter's lock
unless `registry`, which declares the kernels, says that it calls Python. `loader` loads them, and `compiler` compiles
them where they are missing. Their code is in the `kernels` of the stage packages, each explained at the head of its
file. That code imports numba, so nothing but `compiler` imports it, by the names of `registry`.
"""
