"""The commands that a person may want next, as they would be typed."""
