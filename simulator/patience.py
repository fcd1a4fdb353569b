"""Patience: how long a client waits for an answer, and what it does when none comes. It knows no server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """The limits of a client, in nanoseconds; None waits for ever.

    Whatever comes at the very instant at which a limit ends comes too late.

    Attributes:
        first_token: From the sending of a request to its first token.
        answer: From the sending of a request to its last token.
        retries: How often a request is sent again that was refused or took too long.
        backoff: Pause before the first of these tries; it doubles from one to the next.
    """

    first_token: int | None = None
    answer: int | None = None
    retries: int = 0
    backoff: int = 0

    @property
    def ends(self) -> bool:
        """Whether it is ever at an end."""
        return self.first_token is not None or self.answer is not None

    def pause(self, tries: int) -> int:
        """Nanoseconds to wait, once a request was tried again so many times."""
        return self.backoff << tries
