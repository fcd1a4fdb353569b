"""Request: one line of a trace and how far it has got. It does not know its true output length: no policy may."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.batch import DecodingSet


class Request:
    """One request inside a replica.

    ``computed`` counts the tokens whose KV exists, ``generated`` the output tokens emitted, both in tokens.
    While the request decodes, both grow by one a step without being stored: they settle when read.

    Attributes:
        index: Row of the trace.
        arrival: When the client sent it, in nanoseconds.
        prompt: Prompt tokens.
        prefix: Shared prefix of the prompt: ids and the tokens up to which each reaches, in that order. Requests with
            the same id have all tokens up to there in common.
        priority: Lower is more urgent; only policies that know priorities care.
        max_tokens: Declared bound on output tokens; the only output length a policy sees.
        order: Place in the running order, new at each admission; None while it waits.
        admitted: When it took its present slot, in nanoseconds; None while it waits.
        stashed: Tokens whose KV waits outside the GPU, after the request was swapped out.
        lost: Tokens that must be computed a second time because a preemption threw their KV away.
    """

    __slots__ = ("_computed", "_generated", "_joined", "_last", "_name", "_set", "_since",
                 "admitted", "arrival", "index", "lost", "max_tokens", "order", "prefix", "priority", "prompt",
                 "stashed")

    _joined: int    # turn of the set at which it began to decode
    _last: int      # turn of the set that emits its last token
    _since: int     # step that emitted its latest token before that

    def __init__(self, index: int, arrival: int, prompt: int, max_tokens: int, *,
                 prefix: tuple[tuple[Hashable, int], ...] = (), priority: int = 0, name: str | None = None) -> None:
        self.index, self.arrival, self.prompt, self.max_tokens = index, arrival, prompt, max_tokens
        self.prefix, self.priority, self._name = prefix, priority, name
        self.order: int | None = None
        self.admitted: int | None = None
        self.lost = self.stashed = 0
        self._computed = self._generated = 0
        self._set: DecodingSet | None = None

    @property
    def name(self) -> str:
        """The engine's id of it, a string; its row where nobody gave it one."""
        return str(self.index) if self._name is None else self._name

    @property
    def computed(self) -> int:
        """Tokens whose KV exists."""
        members = self._set
        return self._computed if members is None else self._computed + members.turn - self._joined

    @property
    def generated(self) -> int:
        """Output tokens emitted so far."""
        members = self._set
        return self._generated if members is None else self._generated + members.turn - self._joined

    @property
    def known(self) -> int:
        """Prompt and generated tokens: what its KV must cover before it can emit the next one."""
        members = self._set
        known = self.prompt + self._generated
        return known if members is None else known + members.turn - self._joined

    @property
    def lacking(self) -> int:
        """Known tokens without KV: 1 for a decode, more for one that must catch up."""
        return self.prompt + self._generated - self._computed

    @property
    def decoding(self) -> bool:
        """Whether it computes exactly one token in every step."""
        return self._set is not None

    def again(self) -> Request:
        """The same request as nobody has seen it yet: for another try."""
        return Request(self.index, self.arrival, self.prompt, self.max_tokens, prefix=self.prefix,
                       priority=self.priority, name=self._name)

    def reuse(self, tokens: int) -> None:
        """Find the KV of the first `tokens` at hand: they count as computed."""
        self._computed = tokens

    def stash(self) -> None:
        """Move the KV out of the GPU: it counts as not there, and is not lost."""
        self.stashed, self._computed, self.order = self._computed, 0, None

    def unstash(self) -> None:
        """Have the KV back."""
        self._computed, self.stashed = self.stashed, 0

    def forget(self) -> None:
        """Lose all KV (preemption): everything computed so far must be computed again."""
        self.lost = max(self.lost, self._computed)
        self._computed = 0
        self.order = None

    def __repr__(self) -> str:
        return f"Request({self.index}, prompt={self.prompt}, computed={self.computed}, generated={self.generated})"
