"""The steps: each module has `measure`, which gives the numbers of its step and says what in them is wrong."""
