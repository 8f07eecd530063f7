"""Fixtures every test may use."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real corpora and benchmarks beside the checkout; a test that needs them skips where they are absent."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip("needs the shared data directory beside the checkout")
    return path
