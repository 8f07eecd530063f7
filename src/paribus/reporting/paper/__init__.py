"""A paper's own table beside ours."""
