"""Compiled loops: numba makes object code once, llvmlite loads it ever after.

A kernel takes addresses and integers, allocates nothing, raises nothing and holds no lock. `registry` declares the
kernels, `build` compiles them, `loader` loads them. Their code is in the `kernels` of the stage packages; it imports
numba, so `build` alone imports it.
"""
