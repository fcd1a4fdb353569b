"""Scenarios in the recordings' words: options named as vLLM names them, and requests as plain rows; read or drawn.

A row has id, prompt_tokens, output_tokens, arrival_step (or arrival_us), priority, and `prefix`: ids and the tokens up
to which each reaches. At each position, requests have a token in common if they have the same id there. Who runs a
scenario gives one line a step, in the recordings' words. It knows no policy and no engine.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "vllm"
DEFAULTS = {"max_num_seqs": 16, "max_num_batched_tokens": 2048, "block_size": 16, "num_gpu_blocks": 1000,
            "enable_chunked_prefill": True, "enable_prefix_caching": False, "long_prefill_token_threshold": 0,
            "policy": "fcfs", "max_model_len": 8192, "watermark": 0.0, "scheduler_reserve_full_isl": True,
            "clock": "step", "step_base_us": 0, "step_per_token_us": 0, "max_steps": 200_000}

Line = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Options, all of them, and requests by arrival."""

    options: Line
    requests: list[Line]

    @property
    def base(self) -> int:
        """What a step takes, in the clock's units, however many tokens it has."""
        return 1 if self.options["clock"] == "step" else self.options["step_base_us"]

    @property
    def per_token(self) -> int:
        """What it takes for each token."""
        return 0 if self.options["clock"] == "step" else self.options["step_per_token_us"]


def arrival(row: Line) -> int:
    """When a request comes, in the clock's units."""
    return row.get("arrival_us", row.get("arrival_step", 0))


def identities(row: Line) -> list[Any]:
    """One object a prompt token: equal where two requests have the token in common."""
    tokens: list[Any] = []
    for name, end in row["prefix"]:
        tokens += [("shared", name)] * (end - len(tokens))
    return tokens + [("own", row["id"])] * (row["prompt_tokens"] - len(tokens))


def first_difference(lines: list[Line], reference: list[Line]) -> str | None:
    """The first step and field in which `lines` depart from a reference; None if they never do.

    Fields that only one side has are not compared. A recording names only the first of those who wait.
    """
    for number, (mine, theirs) in enumerate(zip(lines, reference, strict=False)):
        for field in mine.keys() & theirs.keys():
            found, wanted = mine[field], theirs[field]
            if field == "waiting":
                found, wanted = (names[:min(len(found), len(wanted))] for names in (found, wanted))
            if found != wanted:
                return f"step {number}, {field}: {found}, not {wanted}"
    if len(lines) != len(reference):
        return f"{len(lines)} steps, not {len(reference)}"
    return None


# Read and written

def recorded() -> list[str]:
    """Names of the recordings."""
    return sorted(path.name.removesuffix(".options.json") for path in FOLDER.glob("*.options.json"))


def read(name: str) -> tuple[Scenario, list[Line]]:
    """A recording: its scenario without the requests that the engine refused, and its steps."""
    options = DEFAULTS | json.loads((FOLDER / f"{name}.options.json").read_text())
    header, *steps, _ = _lines(FOLDER / f"{name}.trace.jsonl.gz")
    refused = header["header"]["rejected"]
    rows = [row for row in _lines(FOLDER / f"{name}.requests.jsonl.gz") if row["id"] not in refused]
    for row in rows:
        group = row.get("prefix_group")
        row["prefix"] = [] if group is None else [[group, min(row["prefix_tokens"], row["prompt_tokens"])]]
    return Scenario(options, sorted(rows, key=arrival)), steps


def _lines(path: Path) -> list[Line]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def unpack(name: str, folder: Path) -> None:
    """Copy what a recorder needs of a recording."""
    (folder / f"{name}.options.json").write_text((FOLDER / f"{name}.options.json").read_text())
    requests = FOLDER / f"{name}.requests.jsonl.gz"
    (folder / f"{name}.requests.jsonl").write_bytes(gzip.decompress(requests.read_bytes()))


def write(scenario: Scenario, folder: Path, name: str) -> None:
    """The scenario as a recorder wants it: token ids where prefixes are nested, else groups."""
    nested = any(len(row["prefix"]) > 1 for row in scenario.requests)
    numbers: dict[Any, int] = {}
    rows = []
    for row in scenario.requests:
        row = dict(row)
        prefix = row.pop("prefix")
        if nested:
            tokens = identities({**row, "prefix": prefix})
            row["prompt_token_ids"] = [numbers.setdefault(token, len(numbers)) for token in tokens]
            del row["prompt_tokens"]
        elif prefix:
            row["prefix_group"], row["prefix_tokens"] = prefix[0]
        rows.append(json.dumps(row) + "\n")
    (folder / f"{name}.options.json").write_text(json.dumps(scenario.options))
    (folder / f"{name}.requests.jsonl").write_text("".join(rows))


# Drawn

def draw(random: Random, most: int = 24) -> Scenario:
    """A scenario of up to `most` requests, each of which fits the pool: small, tight and full of coincidences.

    Some never end: by priority and without reservation, requests can preempt each other for ever.
    """
    block = random.choice([1, 2, 3, 4, 4, 5, 8, 16, 32, 64])
    unit = random.choice([block, max(2, block // 2 + 1), 2 * block])
    prefix = random.choice([_no_prefix, _groups, _groups, _groups, _nested, _nested])(random, unit)
    requests = [_request(random, f"{random.choice('ab')}{at}", unit, next(prefix))
                for at in range(random.randint(1, most))]
    levels = random.choice([[0], [0], [0, 1], [0, 1, 2], [-1, 0], [-10 ** 9, 0, 10 ** 9]])
    clock = _clock(random)
    for row, at in zip(requests, _arrivals(random, len(requests)), strict=True):
        row |= _time(random, clock, at) | {"priority": random.choice(levels)}
    return Scenario(_options(random, requests, block) | clock, sorted(requests, key=arrival))


def _clock(random: Random) -> dict[str, Any]:
    """Time counts steps, or a step takes so long, and longer for each token."""
    if random.random() < 0.7:
        return {"clock": "step"}
    return {"clock": "us", "step_base_us": random.choice([1, 7, 1000]), "step_per_token_us": random.choice([0, 1, 13])}


def _time(random: Random, clock: dict[str, Any], at: int) -> dict[str, int]:
    """When a request comes, given in steps: about then, or exactly when a step ends."""
    if clock["clock"] == "step":
        return {"arrival_step": at}
    return {"arrival_us": at * (clock["step_base_us"] + random.choice([0, 0, clock["step_per_token_us"]]))}


def _request(random: Random, name: str, unit: int, prefix: list[list[Any]]) -> dict[str, Any]:
    shared = prefix[-1][1] if prefix else 0
    own = random.choice([0, 0, 1, unit, 2 * unit, random.randint(1, 5 * unit)])
    prompt = max(1, shared + own)
    return {"id": name, "prompt_tokens": prompt, "prefix": prefix,
            "output_tokens": random.choice([1, 2, random.randint(1, 30), random.randint(1, 12 * unit)])}


def _no_prefix(random: Random, unit: int) -> Any:
    while True:
        yield []


def _groups(random: Random, unit: int) -> Any:
    """One id a request; in a group the lengths may differ."""
    names = [*"xyz"][:random.randint(1, 3)]
    usual = {name: random.choice([unit, 3 * unit, random.randint(1, 6 * unit)]) for name in names}
    loose = random.random() < 0.5
    while True:
        name = random.choice(names)
        reach = random.randint(1, 6 * unit) if loose else usual[name]
        yield [[name, reach]] if random.random() < 0.85 else []


def _nested(random: Random, unit: int) -> Any:
    """Chains of ids that each stand for so many tokens and all before, like hash ids: paths in a tree."""
    width, depth = random.choice([1, 2, 3]), random.randint(2, 6)
    while True:
        path, chain = "", []
        for level in range(1, random.randint(1, depth) + 1):
            path += random.choice("pqr"[:width])
            chain.append([path, level * unit])
        if random.random() < 0.3:
            chain[-1][1] -= random.randrange(unit)    # the last one not to its end
        yield chain


def _arrivals(random: Random, count: int) -> list[int]:
    style = random.choice(["at once", "bursts", "scattered"])
    if style == "at once":
        return [0] * count
    if style == "bursts":
        starts = [random.randint(0, 40) for _ in range(random.randint(1, 4))]
        return sorted(random.choice(starts) for _ in range(count))
    return sorted(random.randint(0, 2 * count) for _ in range(count))


def _options(random: Random, requests: list[dict[str, Any]], block: int) -> dict[str, Any]:
    longest = max(row["prompt_tokens"] for row in requests)
    whole = max(row["prompt_tokens"] + row["output_tokens"] for row in requests)
    model_len = random.choice([whole, whole, longest + 1, random.randint(longest + 1, max(longest + 1, whole))])
    largest = max(-(-(min(model_len, row["prompt_tokens"] + row["output_tokens"]) - 1) // block) for row in requests)
    seqs = random.choice([1, 2, 3, 5, 8, 16, 16, 40])
    chunked = random.random() < 0.75
    least = seqs if chunked else max(seqs, model_len)
    return DEFAULTS | {
        "max_num_seqs": seqs, "block_size": block, "max_model_len": model_len,
        "max_num_batched_tokens": least + random.choice([0, 1, block, random.randint(0, 2 * whole), 4 * whole]),
        "num_gpu_blocks": 1 + largest + random.choice([0, 0, 1, 2, largest // 2, largest, 2 * largest, 5 * largest]),
        "enable_chunked_prefill": chunked, "enable_prefix_caching": random.random() < 0.85,
        "long_prefill_token_threshold": random.choice([0, 0, 1, min(model_len, block + 1), model_len // 2,
                                                       random.randint(1, model_len)]),
        "policy": random.choice(["fcfs", "priority"]), "watermark": random.choice([0.0, 0.0, 0.0, 0.01, 0.3, 0.9]),
        "scheduler_reserve_full_isl": random.random() < 0.75, "max_steps": 3000}
