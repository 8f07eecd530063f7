"""The verb `paribus tokens`: what tokenizers, encoders and pre-tokenizers do with text, without a run."""
