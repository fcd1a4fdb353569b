"""The one error of this package, and the words that help a reader of it: near names and shown values.

It knows nothing of traces or files.
"""

import difflib
from collections.abc import Iterable

SHOWN = 60
"""Characters of a bad value that an error shows."""


LONGEST = 2000
"""Characters of a message."""


class TraceError(ValueError):
    """A trace, a trace file or a request for one is wrong; the message is one line, whatever a file holds."""

    def __init__(self, message: str = "") -> None:
        text = message if message.isprintable() else "".join(map(_spelled, message))
        super().__init__(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _spelled(char: str) -> str:
    return char if char.isprintable() else ascii(char)[1:-1]


def shown(value: object) -> str:
    """`value` on one line: quoted, control characters escaped, cut to SHOWN characters."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"    # which Python does not spell
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def plain(text: str) -> str:
    """A path or a name on one line: unquoted as long as every character prints."""
    return text if text.isprintable() else ascii(text)


def unknown(kind: str, name: object, known: Iterable[str], meant: str = "") -> TraceError:
    """The error for a `name` that is not one of `known`, with the one that is `meant`, else the nearest one."""
    known = list(known)
    near = [meant] if meant else difflib.get_close_matches(str(name)[:SHOWN], known, n=1)
    hint = f": did you mean {near[0]!r}?" if near else ""
    return TraceError(f"unknown {kind} {shown(name)}{hint} (known: {', '.join(known)})")
