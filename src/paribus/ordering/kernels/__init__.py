"""The compiled loops of ordering; see `paribus.native`."""
