"""text-generation-inference: who is let in, two loops that differ by whether prompts may be computed in chunks.

Read `batching` (who is let in), then `whole_prompts` and `chunked` (the loops); `policy` has the knobs.
"""

from simulator.policies.tgi.policy import Tgi

__all__ = ["Tgi"]
