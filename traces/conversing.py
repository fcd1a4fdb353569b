"""Conversing: the columns of a trace whose requests follow each other as a Dialogue says.

Turns of one conversation are drawn apart from each other, and so are conversations, but for blocks with which all
prompts begin.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.arrivals import SECOND
from traces.dialogue import PROBS, Dialogue
from traces.laws import Law
from traces.lengths import stratified
from traces.ragged import Ragged

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
FITS = 0.9
"""Share of the trace's span that a conversation takes at most; longer ones are sped up."""


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
