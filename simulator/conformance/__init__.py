"""Conformance: does a policy take the decisions that the engine itself took, step by step?

    >>> from simulator.conformance import conformance
    >>> [(verdict.name, verdict.identical) for verdict in conformance("vllm", "recordings")]
    [('01_light', True)]

A recording is made by driving the engine's own scheduler, with a model that only pretends, and writing down what it
decides. Each scenario is three files in one directory, the last two plain or gzipped:

    NAME.options.json      the engine's settings (NAME.opts.json will do)
    NAME.requests.jsonl    one request a line, in the order of submission
    NAME.trace.jsonl       one step a line: what one call of the scheduler decided, and what came of it.
                           Before the first may stand {"header": {...}}, after the last {"footer": {...}}.

The words in them are the engine's own: see the module of that engine, such as `vllm`. A field that a step does not
have is not compared, and named in the answer; a field that is not known is refused. A trace without a footer that was
cut short differs where it ends, since the replay goes on.

The replay goes through the Replica: its plan, its commit, its memory. Nothing stands before the policy, so what the
engine would stall on stalls here, too. Read `recording`, `engine`, `vllm` (or another engine), `replaying`,
`comparing`, `checking`.
"""

from __future__ import annotations

from simulator.conformance.checking import ENGINES, Verdict, check, conformance, recordings
from simulator.conformance.comparing import MODES, Difference, Mode, Outcome, compare
from simulator.conformance.engine import Case, Decision, Engine
from simulator.conformance.recording import Recording

__all__ = ["ENGINES", "MODES", "Case", "Decision", "Difference", "Engine", "Mode", "Outcome", "Recording", "Verdict",
           "check", "compare", "conformance", "recordings"]
