"""One line, whatever a file holds."""

import pytest

from traces import TraceError
from traces.errors import LONGEST, SHOWN, shown


@pytest.mark.parametrize(("message", "told"), [
    ("a\nb", "a\\nb"), ("\x1b[31mré", "\\x1b[31mré"), ("\u2028", "\\u2028"), ("é" * LONGEST, "é" * LONGEST),
    ("é" * (LONGEST + 1), "é" * LONGEST + "..."),
])
def test_a_message_is_one_line_that_prints(message, told):
    assert str(TraceError(message)) == told


def test_a_wrong_value_is_shown_in_short():
    assert shown("a\nb") == "'a\\nb'"
    assert shown("x" * 99) == "'" + "x" * (SHOWN - 1) + "..."
    assert shown(10**5000) == shown([10**5000]) == "a number of thousands of digits"
