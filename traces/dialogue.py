"""Dialogue: how the requests of a drawn trace follow each other, and which blocks of their prompts are the same.

A later prompt is the prompt before it, the answer to that, and a new message; some turns keep only the beginning of the
prompt before. Turns of one conversation are drawn apart from each other, and so are conversations, but for blocks with
which all prompts begin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.arrivals import SECOND
from traces.errors import TraceError, shown
from traces.laws import Law
from traces.lengths import stratified
from traces.ragged import Ragged
from traces.strict import count, number

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
PROBS = np.arange(101) / 100
FITS = 0.9
"""Share of the trace's span that a conversation takes at most; longer ones are sped up."""


@dataclass(frozen=True)
class Dialogue:
    """The conversations of a spec. Quantiles stand at the probabilities 0, 0.01, ... 1; values between are linear.

    Attributes:
        sizes: How many conversations have so many turns, by turns.
        alone_below: First prompts of fewer tokens stay without a second turn, as far as there are others.
        gap_s: Quantiles of the seconds from one turn to the next.
        tick_s: These are rounded to whole ticks of so many seconds; 0: not at all.
        message: Quantiles of the tokens of a later prompt beyond the prompt before it and the answer to that, below 0
            where not all of the answer comes again; in conversations of so many turns or more, by turns.
        cut: Share of later turns that repeat only the beginning of the prompt before, by the tokens that this has at
            least; others repeat all of its full blocks.
        kept: For these, quantiles of the percentage of that prompt that they repeat.
        length: For these, quantiles of the percentage of its length that they have.
        block: Tokens of a block.
        common: Blocks with which all prompts begin.
        longest: Tokens of the longest prompt; what would be longer is cut there.
        reused: Share of the source's prompt tokens in blocks that came before, as published, for tests.
    """

    sizes: Mapping[int, int]
    gap_s: Sequence[float]
    message: Mapping[int, Sequence[float]]
    longest: int
    cut: Mapping[int, float] = field(default_factory=dict)
    kept: Sequence[float] = ()
    length: Sequence[float] = ()
    alone_below: int = 0
    tick_s: int = 0
    block: int = 512
    common: int = 0
    reused: float = 0.0

    def __post_init__(self) -> None:
        for name, value, least in (("longest", self.longest, 1), ("block", self.block, 1), ("tick_s", self.tick_s, 0),
                                   ("common", self.common, 0), ("alone_below", self.alone_below, 0)):
            count(name, value, least)
        for name in ("sizes", "message", "cut"):
            given = getattr(self, name)
            if not isinstance(given, Mapping) or not (given or name == "cut"):
                raise TraceError(f"{name} must map whole numbers to values, not {shown(given)}")
            for key in given:
                count(f"a key of {name}", key, 0 if name == "cut" else 1)
        for turns, conversations in self.sizes.items():
            count(f"sizes of {turns} turns", conversations)
        for share in self.cut.values():
            number("cut", share, above=-1e-9, most=1)
        for turns, quantiles in self.message.items():
            _check_quantiles(f"message of {turns} turns", quantiles, -self.longest)
        for name in ("gap_s", *(("kept", "length") if self.cut else ())):
            _check_quantiles(name, getattr(self, name), 0)

    @property
    def conversations(self) -> int:
        """How many there are."""
        return sum(self.sizes.values())

    @property
    def rows(self) -> int:
        """Turns of all of them."""
        return sum(turns * conversations for turns, conversations in self.sizes.items())


def converse(said: Dialogue, prompt: Int64, output: Int64, starts: Int64, answers: Law,
             rng: np.random.Generator) -> dict[str, Any]:
    """The columns of a trace in which conversations of these first prompts and outputs start at these times, in ns."""
    turns = _turns(said, prompt, rng)
    talk = np.repeat(np.arange(len(turns)), turns)
    turn = np.arange(len(talk)) - np.repeat(np.cumsum(turns) - turns, turns)
    later = turn > 0
    gaps = np.where(later, _gaps(said, turns, talk, later, int(starts[-1]), rng), 0)
    since = np.cumsum(gaps) - np.repeat(np.cumsum(gaps)[turn == 0], turns)
    lengths = np.zeros(len(turns), np.int64)
    np.maximum.at(lengths, talk, since)
    arrival = _placed(starts, lengths, rng)[talk] + since
    outputs = np.empty(len(talk), np.int64)
    outputs[~later], outputs[later] = output, answers.at(_chances(int(later.sum()), rng))
    prompts, repeated = _prompts(said, turns[talk], turn, prompt, outputs, rng)
    order = np.lexsort((turn, arrival))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    parent = np.where(later, np.roll(place, 1), -1)[order]
    names = tuple(f"{each}" if turns[each] > 1 else "" for each in talk[order].tolist())
    ids = _ids(said, prompts[order].tolist(), parent.tolist(), repeated[order].tolist())
    return {"arrival": arrival[order] - arrival[order[0]], "prompt": prompts[order], "output": outputs[order],
            "session": names, "parent": parent, "hash_ids": ids, "hash_block": said.block}


def _check_quantiles(name: str, values: object, least: float) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != len(PROBS):
        raise TraceError(f"{name} must list {len(PROBS)} numbers")
    for value in values:
        number(name, value, above=least - 1e-9)
    if np.any(np.diff(values) < 0):
        raise TraceError(f"{name} must not fall from one probability to the next")


def _turns(said: Dialogue, prompt: Int64, rng: np.random.Generator) -> Int64:
    """Turns of the conversation with each first prompt: shortest conversations first to those who stay alone."""
    sizes = np.sort(np.repeat(list(said.sizes), list(said.sizes.values())))
    order = np.lexsort((rng.random(len(prompt)), prompt >= said.alone_below))
    alone = int(np.count_nonzero(prompt < said.alone_below))
    turns = np.empty(len(prompt), np.int64)
    turns[order] = np.concatenate((sizes[:alone], rng.permutation(sizes[alone:])))
    return turns


def _chances(n: int, rng: np.random.Generator) -> Float64:
    return stratified(rng.random(n), rng)


def _drawn(quantiles: Sequence[float], n: int, rng: np.random.Generator) -> Float64:
    """So many values with these quantiles."""
    return np.interp(_chances(n, rng), PROBS, np.asarray(quantiles, float))


def _from(steps: Mapping[int, Any], at: Int64) -> Int64:
    """For each value the place of the last step that begins no later; the first one counts for what lies before."""
    return np.maximum(np.searchsorted(sorted(steps), at, side="right") - 1, 0)


def _gaps(said: Dialogue, turns: Int64, talk: Int64, later: npt.NDArray[np.bool_], span: int,
          rng: np.random.Generator) -> Int64:
    """ns from the turn before to each; those of a conversation that does not fit into the span are shrunk."""
    seconds = np.zeros(len(talk))
    seconds[later] = _drawn(said.gap_s, int(later.sum()), rng)
    lengths = np.bincount(talk, seconds, len(turns))
    room = FITS * span / SECOND
    seconds *= np.minimum(1, room / np.maximum(lengths, 1e-9))[talk]
    tick = said.tick_s * SECOND
    return np.rint(seconds * SECOND / (tick or 1)).astype(np.int64) * (tick or 1)


def _placed(starts: Int64, lengths: Int64, rng: np.random.Generator) -> Int64:
    """Who starts when: at random, but so that all conversations end with the trace, as far as they can."""
    chances, given = rng.random(len(starts)).tolist(), starts.tolist()
    latest = (starts[-1] - lengths).tolist()
    found, open_, at = np.empty_like(starts), list[int](), 0
    for chance, talk in zip(chances, np.argsort(-lengths, kind="stable").tolist(), strict=True):
        while at < len(given) and (given[at] <= latest[talk] or not open_):
            open_.append(given[at])
            at += 1
        where = int(chance * len(open_))
        found[talk], open_[where] = open_[where], open_[-1]
        open_.pop()
    return found


def _prompts(said: Dialogue, turns: Int64, turn: Int64, first: Int64, output: Int64,
             rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Prompts of all turns, conversation by conversation, and how many blocks each repeats of the one before."""
    message = _messages(said, turns, turn > 0, rng)
    prompt, repeated = np.zeros((2, len(turn)), np.int64)
    prompt[turn == 0] = np.minimum(first, said.longest)
    for place in range(1, int(turn.max(initial=0)) + 1):
        rows = np.flatnonzero(turn == place)
        before = prompt[rows - 1]
        kept, wanted = before // said.block, before + output[rows - 1] + message[rows]
        if len(cut := np.flatnonzero(_is_cut(said, before, rng))):
            share, length = (_drawn(each, len(cut), rng) / 100 for each in (said.kept, said.length))
            some = np.maximum(np.rint(share * before[cut] / said.block).astype(np.int64), said.common)
            kept[cut], wanted[cut] = np.minimum(some, kept[cut]), length * before[cut]
        prompt[rows] = np.clip(np.rint(wanted), np.maximum(kept * said.block, 1), said.longest)
        repeated[rows] = kept
    return prompt, repeated


def _messages(said: Dialogue, turns: Int64, later: npt.NDArray[np.bool_], rng: np.random.Generator) -> Float64:
    """Tokens that each later turn adds, by the turns of its conversation."""
    message, kinds = np.zeros(len(turns)), _from(said.message, turns)
    for kind, turns_ in enumerate(sorted(said.message)):
        rows = np.flatnonzero(later & (kinds == kind))
        message[rows] = _drawn(said.message[turns_], len(rows), rng)
    return message


def _is_cut(said: Dialogue, before: Int64, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which turns repeat only the beginning of a prompt of so many tokens."""
    if not said.cut:
        return np.zeros(len(before), bool)
    shares = np.array([said.cut[tokens] for tokens in sorted(said.cut)])
    return rng.random(len(before)) < np.where(before < min(said.cut), 0, shares[_from(said.cut, before)])


def _ids(said: Dialogue, prompt: list[int], parent: list[int], repeated: list[int]) -> Ragged:
    """The ids of every prompt's blocks, in order of arrival: common ones, those of the turn before, new ones."""
    common, following, found = list(range(said.common)), said.common, list[list[int]]()
    for tokens, before, blocks in zip(prompt, parent, repeated, strict=True):
        length = -(-tokens // said.block)
        known = common[:tokens // said.block] if before < 0 else found[before][:blocks]
        new = length - len(known)
        found.append([*known, *range(following, following + new)])
        following += new
    return Ragged.of(found)
