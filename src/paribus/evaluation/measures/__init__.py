"""Measures of texts and segmentations against what people wrote, as their own scripts take them."""
