"""What the log of a process keeps of how it ended."""

from paribus.errors import DataError, InterruptedRunError, log_text


def test_a_stop_is_a_line_and_all_else_a_traceback() -> None:
    message = "stopped by a signal after step 3, whose checkpoint is written"
    assert log_text(InterruptedRunError(message)) == f"interrupted: {message}\n"
    assert "DataError: a line is torn" in log_text(DataError("a line is torn"))


def test_a_stop_while_something_else_went_wrong_hides_nothing_of_it() -> None:
    try:
        try:
            raise ValueError("the loss is not finite")
        finally:
            raise InterruptedRunError("stopped by a signal")
    except InterruptedRunError as error:
        message = log_text(error)
    assert "ValueError: the loss is not finite" in message and "InterruptedRunError: stopped by a signal" in message
