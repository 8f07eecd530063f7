"""How a training stops where a signal asks for it: nothing that was promised is lost."""

from typing import Any

import pytest

from paribus.pipeline import execute
from paribus.training.distributed import STOP, PendingRequests, Requests


def test_a_signal_that_comes_while_requests_are_read_is_kept() -> None:
    class Late(Requests):
        def _read(self) -> bytes:
            if not self.came:
                self._own.extend(STOP)
            self.came = True
            return b""

    requests = Late()
    requests.came = False  # type: ignore[attr-defined]
    assert [requests.take(), requests.take(), requests.take()] == [
        PendingRequests(save=False, stop=False),
        PendingRequests(save=False, stop=True),
        PendingRequests(save=False, stop=False),
    ]


def test_a_second_signal_at_once_is_no_further_interruption_and_a_lost_terminal_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A terminal that is closed sends two signals, and what is written to it fails from then on."""
    heard: list[str] = []

    class Gone:
        def progress(self, *_: object) -> None:
            raise OSError(5, "Input/output error")

        metric = message = progress

    def listen(channel: object, listener: Any, check: object) -> None:
        heard.append("listening")
        listener.message("a line")
        listener.progress(1, 2, "steps", "taking steps", "")
        listener.metric("loss", 1.0, 1)
        if len(heard) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(execute, "_listen", listen)
    monkeypatch.setattr(execute, "_signal", lambda child, number: None)
    execute._ask_to_end(None, None, Gone(), 5.0)  # type: ignore[arg-type]
    assert heard == ["listening", "listening"]
