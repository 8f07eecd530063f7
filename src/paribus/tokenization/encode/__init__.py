"""Text to ids with compiled kernels, whatever the encoder: tables made once, scratch memory a thread."""
