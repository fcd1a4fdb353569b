"""The first moments of the command. Nothing is there yet that could be lost, so Ctrl-C just ends it.

Otherwise a user would read which import it met. Where somebody's own program imports us, its signals are its own.
`main` listens later.
"""

from __future__ import annotations

import os
import signal
import sys


def is_command() -> bool:
    """Whether this process is `batchsim` or `python -m simulator.cli`."""
    name = os.path.basename((getattr(sys, "argv", None) or [""])[0])
    return os.path.splitext(name)[0] == "batchsim" or "simulator.cli" in sys.orig_argv


def begin() -> None:
    """Let Ctrl-C end the command at once, unless the caller had it ignored."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
