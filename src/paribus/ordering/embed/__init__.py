"""Documents as unit vectors, so that related documents have a large inner product."""
