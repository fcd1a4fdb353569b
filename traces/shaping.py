"""What is done to a trace before it is replayed: a sample, other lengths, several rounds, a shape, a longest length,
a cap, another spread of the outputs.

Each function takes a trace and gives a new one, and notes what a user of it must know. They are meant to be called in
the order in which they stand here: first what is left out, last what is cut off.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from traces.arrivals import LONGEST_NS, MOST_REQUESTS, SECOND, gamma_arrivals, is_number
from traces.columns import Int64
from traces.errors import TraceError, shown
from traces.joining import joined
from traces.ragged import Ragged
from traces.shape import Shape, shape_of, shaped_times
from traces.strict import count
from traces.trace import Trace

MOST_TOKENS = 1 << 53
"""Of a request, as in a file."""
MOST_SPREAD = 4
"""Largest power: beyond it a handful of outputs would hold nearly all tokens."""


def sampled(trace: Trace, share: float, rng: np.random.Generator) -> Trace:
    """A share of the requests, drawn so that load over time and lengths stay as they are; conversations stay whole.

    The requests are put in order by minute and, within it, by output and prompt; of each 1/share in a row one is
    drawn. So every minute keeps its share to within two requests, and so does every range of outputs within it.
    """
    if not (is_number(share) and 0 < share <= 1):
        raise TraceError(f"a sample must be a share above 0 and at most 1, not {shown(share)}")
    starts = np.flatnonzero(_root(trace) == np.arange(len(trace)))
    order = starts[np.lexsort((trace.prompt[starts], trace.output[starts], trace.arrival[starts] // (60 * SECOND)))]
    wanted = max(1, round(share * len(order))) if len(order) else 0
    edges = np.arange(wanted + 1) * len(order) // max(wanted, 1)
    drawn = order[edges[:-1] + np.floor(rng.random(wanted) * np.diff(edges)).astype(np.int64)]
    chosen = np.zeros(len(trace), dtype=bool)
    chosen[drawn] = True
    return trace.take(np.flatnonzero(chosen[_root(trace)])).noted(f"a sample of {share:.6g} of the requests")


def stretched(trace: Trace, prompts: float, outputs: float) -> Trace:
    """The trace with lengths so many times as long, rounded, 1 token at least; declared ones go with the outputs.

    Prefix blocks grow with the prompts, so that who began alike still does. Raises TraceError where blocks would not be
    whole tokens, and for conversations, whose later prompts hold the turns before them.
    """
    for name, factor in (("prompts", prompts), ("outputs", outputs)):
        if not (is_number(factor) and 0 < factor < math.inf):
            raise TraceError(f"a scale of {name} must be a finite number above 0, not {shown(factor)}")
    if prompts == outputs == 1:
        return trace
    _refuse_turns(trace)
    declared = None if trace.max_tokens is None else _times(trace.max_tokens, outputs)
    longer = replace(trace, prompt=_times(trace.prompt, prompts), output=_times(trace.output, outputs),
                     max_tokens=declared, hash_block=_block_times(trace, prompts))
    longer = replace(longer, hash_ids=_ids_within(longer, longer.prompt))
    return longer.noted(f"prompts x {prompts:.6g}, outputs x {outputs:.6g}")


def _times(tokens: Int64, factor: float) -> Int64:
    if float(tokens.max(initial=1)) * factor > MOST_TOKENS:
        raise TraceError(f"lengths x {factor:.6g} come to more than {MOST_TOKENS:,} tokens: take a smaller scale")
    return np.maximum(1, np.rint(tokens * factor)).astype(np.int64)


def _block_times(trace: Trace, factor: float) -> int | None:
    """The size of a prefix block, if there are any."""
    if trace.hash_block is None:
        return None
    size = trace.hash_block * factor
    whole = round(size) if math.isfinite(size) else 0
    if whole < 1 or not math.isclose(size, whole, rel_tol=1e-12):    # 100 x 1.1 is not quite 110
        raise TraceError(f"trace {trace.name!r} has prefix blocks of {trace.hash_block} tokens, which prompts x "
                         f"{factor:.12g} would make {size:.12g}: take a scale that leaves whole tokens, such as 2")
    return whole


def _refuse_turns(trace: Trace) -> None:
    if trace.has_turns:
        raise TraceError(f"trace {trace.name!r} has conversations, and later prompts hold the answers before them: "
                         "their lengths cannot change by themselves")


def repeated(trace: Trace, rounds: int) -> Trace:
    """The trace so many times, one after the other, a mean gap between them; rounds have no prefix in common."""
    count("rounds", rounds)
    if rounds == 1 or not len(trace):
        return trace
    span = int(trace.arrival[-1])
    length = span + (round(span / (len(trace) - 1)) if len(trace) > 1 else 0)
    if length * rounds > LONGEST_NS:
        raise TraceError(f"{rounds} rounds of {trace.name} take more than 146 years")
    if len(trace) * rounds > MOST_REQUESTS:
        raise TraceError(f"{rounds} rounds of {trace.name} come to {len(trace) * rounds:,} requests: repeat it less "
                         f"often, {MOST_REQUESTS:,} requests are the most")
    whole = joined(trace.name, [trace] * rounds, [trace.arrival + length * at for at in range(rounds)], akin=False)
    own = np.arange(len(trace)) if trace.original is None else trace.original
    return replace(whole, original=np.tile(own, rounds)).noted(f"repeated: {rounds} rounds")


def shaped(trace: Trace, shape: Shape | str, burstiness: float, rng: np.random.Generator, *,
           cut: bool = False) -> Trace:
    """The requests in the same order, at arrivals that follow the shape.

    A shape with rates of its own replaces the trace's times by Gamma gaps in the time of its integral (`burstiness` as
    in `gamma_arrivals`), and requests beyond its end are left out. Bursts alone speed up the times that are there.
    Raises TraceError where the trace ends before the shape does, unless it was `cut` to fewer requests on purpose.
    """
    shape = shape_of(shape) if isinstance(shape, str) else shape
    if shape.replaces and not cut and len(trace) < shape.requests:
        rounds = math.ceil(shape.requests / max(1, len(trace)))
        raise TraceError(f"the shape comes to {shape.requests:,.0f} requests, and {trace.name} has {len(trace):,}: "
                         f"repeat the trace {rounds} times (--repeat {rounds}), or shorten the shape")
    process = gamma_arrivals(len(trace), 1, burstiness, rng) / SECOND if shape.replaces else np.zeros(0)
    times = shaped_times(shape, trace.arrival, process)
    found = replace(trace.slice(0, len(times)), arrival=times)
    if len(found) < len(trace):
        return found.noted(f"the shape ends after {len(found):,} of {len(trace):,} requests: the others are left out")
    for note in _unreached(shape, found):
        found = found.noted(note)
    return found


def _unreached(shape: Shape, trace: Trace) -> Iterator[str]:
    """What of a shape comes after all requests of the trace that was shaped."""
    end, requests = (float(trace.arrival[-1]) / SECOND if len(trace) else 0.0), len(trace)
    for burst in shape.bursts:
        if burst.at > end:
            yield (f"the burst at {burst.at:,g} s changes nothing: the last of {requests:,} requests comes at "
                   f"{end:,.6g} s")
    if requests < shape.requests < math.inf:
        yield (f"the shape lasts {shape.seconds:,g} s, and the last of {requests:,} requests comes at {end:,.6g} s of "
               "it")


def truncated(trace: Trace, longest: int) -> tuple[Trace, int]:
    """The trace with no request of more than `longest` tokens, 2 at least, and how many were cut.

    A prompt loses its end, so that what it shares with others stays shared; it keeps one token at least, and then the
    answer is cut, too.
    """
    count("longest", longest, 2)
    prompt = np.clip(longest - trace.output, 1, trace.prompt)
    output = np.minimum(trace.output, np.maximum(longest - prompt, 1))
    cut = int(np.count_nonzero((prompt < trace.prompt) | (output < trace.output)))
    if not cut:
        return trace, 0
    shared = None if trace.shared is None else np.minimum(trace.shared, prompt)
    return replace(trace, prompt=prompt, output=output, shared=shared, hash_ids=_ids_within(trace, prompt)), cut


def spread(trace: Trace, power: float) -> Trace:
    """Outputs raised to a power and scaled to the mean that they had: 0 makes all alike, 1 leaves them as they are.

    Above 1 the long ones grow longer and the short ones shorter. The mean is kept but for rounding to whole tokens.
    Raises TraceError for a trace with conversations, whose later prompts hold the answers.
    """
    if not (is_number(power) and 0 <= power <= MOST_SPREAD):
        raise TraceError(f"a spread must be a number from 0 to {MOST_SPREAD}, not {shown(power)}")
    _refuse_turns(trace)
    if power == 1 or not len(trace):
        return trace
    mean = trace.output.mean()
    raised = (trace.output / mean) ** power
    output = np.maximum(1, np.rint(raised * (mean / raised.mean()))).astype(np.int64)
    return replace(trace, output=output).noted(f"outputs spread: to the power of {power:.6g}, at the same mean")


def capped(trace: Trace, most: int, wanted: npt.NDArray[np.bool_]) -> Trace:
    """The trace up to its `most`-th wanted row; unwanted ones before it are passed over, and stay."""
    count("most", most)
    rows = np.flatnonzero(wanted)
    return trace if len(rows) < most else trace.head(int(rows[most - 1]) + 1)


def _root(trace: Trace) -> Int64:
    """The row that started the conversation of each row: by jumps that double."""
    root = np.arange(len(trace))
    if trace.parent is None:
        return root
    root = np.where(trace.parent < 0, root, trace.parent)
    while not np.array_equal(root, further := root[root]):
        root = further
    return root


def _ids_within(trace: Trace, prompt: Int64) -> Ragged | None:
    """The ids of as many blocks as prompts of these lengths have."""
    if trace.hash_ids is None or trace.hash_block is None:
        return None
    lengths = trace.hash_ids.lengths
    kept = np.minimum(lengths, -(-prompt // trace.hash_block))
    place = np.arange(len(trace.hash_ids.values)) - np.repeat(trace.hash_ids.starts[:-1], lengths)
    return Ragged.parts(trace.hash_ids.values[place < np.repeat(kept, lengths)], kept)

