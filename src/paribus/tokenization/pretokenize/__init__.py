"""How text is cut into the pieces that tokens do not cross: by pattern, or by what was made from data."""
