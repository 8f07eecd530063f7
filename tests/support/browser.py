"""A browser without a screen, where there is one."""

import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def in_a_browser(page: Path, scratch: Path, fragment: str = "") -> str:
    """The page as it stands after its script."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1800"]
    command = [CHROMIUM, *options, f"--user-data-dir={scratch}/chromium", "--dump-dom", f"{page.as_uri()}#{fragment}"]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()
