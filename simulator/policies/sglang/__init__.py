"""SGLang's scheduler. Read `rule` for the order of a step, then `adder` for who is let in, `orders` for who is asked
first, `retraction` for who is sent back when memory runs out, and `ratio` for the guess that all of it rests on.

Mirrors: SGLang 0.5.23, the loop without overlap.
"""

from __future__ import annotations

from simulator.policies.sglang.rule import Sglang

__all__ = ["Sglang"]
