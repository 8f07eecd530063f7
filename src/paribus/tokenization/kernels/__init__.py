"""The compiled loops of tokenization; see `paribus.native`."""
