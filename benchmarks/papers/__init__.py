"""The statistics that papers print of their tokenizers, taken on any corpus."""
