"""Planted errors: how many small changes of the core the tests notice, which they do not, and why that is right.

``python tests/tables/mutants.py`` plants ``--sample`` of them in each module, chosen by ``--seed``, or all with
``--sample 0``; parts, such as ``vllm step``, may be named. What nobody notices is looked up in ``survivors.yaml``; what
is not there is told on stderr, and the exit status is 1. Needs a system that forks.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import scripts
import yaml
from markdown import table
from mutation import Mutant, key, mutants
from planting import Field, Ground, collected, forked, prepare, watched

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
QUEUE = "queue_verbs replica victims priority pause hanging_up vllm_0 tgi late_decodes"
PARTS: dict[str, tuple[str, str]] = {
    "step": ("step", f"{QUEUE} pipeline ft sglang"),
    "request": ("request", f"{QUEUE} batch request"),
    "batch": ("batch", f"{QUEUE} batch"),
    "replica": ("replica passes stretch", f"{QUEUE} batch counts pipeline overheads static wicked"),
    "metrics": ("metrics", "metrics result"),
    "ledger": ("ledger", "ledger"),
    "memory, paged": ("memory/base memory/paged memory/ahead memory/reserved",
                      "memory prompts ledger tgi tensorrt_llm vllm_0 vllm"),
    "memory, contiguous": ("memory/contiguous memory/spaces", "memory layouts orca static"),
    "memory, prefixes": ("memory/prefix memory/line", "prefix prefix_random prefixes decisions"),
    "memory, trees": ("memory/prompts memory/radix memory/tree memory/trie",
                      "memory prompts radix sglang sglang_decisions tgi_decisions"),
    "policies, in common": ("policies/__init__ policies/base policies/loading policies/making",
                            "policy_base every_policy limits setup scenario_files cli/test_policy_files vllm"),
    "static": ("policies/static policies/whole_batch", "static hybrid ft dynamic limits setup layouts"),
    "dynamic": ("policies/dynamic", "dynamic limits setup"),
    "ft": ("policies/ft", "ft limits setup"),
    "orca": ("policies/orca", "orca pipeline layouts limits setup"),
    "vllm": ("policies/vllm policies/vllm_priority",
             "vllm vllm_cases priority victims decisions limits setup late_decodes"),
    "vllm-0": ("policies/vllm_0", "vllm_0 limits setup"),
    "hybrid": ("policies/hybrid policies/hybrid_rules", "hybrid setup limits"),
    "sglang": ("policies/sglang/*", "sglang sglang_decisions radix limits setup"),
    "tensorrt-llm": ("policies/tensorrt_llm/*", "tensorrt_llm tensorrt_llm_decisions limits setup"),
    "tgi": ("policies/tgi/*", "tgi tgi_decisions limits setup"),
}
"""Modules of each part, and the tests that are asked, both without what their names share."""


@dataclass
class Score:
    """What became of the errors planted in one part."""

    part: str
    there: int
    planted: int = 0
    alive: list[Mutant] = field(default_factory=list)

    def row(self, known: Mapping[tuple[str, str], str]) -> tuple[object, ...]:
        """A line of the table. The score is the share noticed of those after which something else comes out."""
        kinds = Counter(known.get(mutant.key, "").partition(":")[0] for mutant in self.alive)
        noticed = self.planted - len(self.alive)
        alike, slower = kinds["equivalent"], kinds["speed"]
        score = noticed / max(1, self.planted - alike - slower)
        return (self.part, self.there, self.planted, noticed, alike, slower, len(self.alive) - alike - slower,
                f"{score:.1%}")


HEAD = ("part", "changes", "planted", "noticed", "no difference", "only slower", "not noticed", "score")


def main(arguments: Sequence[str] | None = None) -> int:
    wanted, known = _arguments(arguments), survivors()
    prepare()
    scores = [plant(part, wanted) for part in wanted.parts or PARTS]
    print(table(HEAD, [score.row(known) for score in scores]))
    print()
    print(table(("part", "changes", "not noticed, because"), reasons(scores, known)))
    unknown = [mutant for score in scores for mutant in score.alive if mutant.key not in known]
    for mutant in unknown:
        print(f"{mutant.module}:{mutant.lines[0]}: {mutant.name}", file=sys.stderr)
    return int(bool(unknown))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = scripts.Asked(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--sample", type=int, default=25, help="changes of each module; 0: all (default 25)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=15.0, help="seconds of tests for each change (default 15)")
    return parser.parse_args(arguments)


def survivors() -> dict[tuple[str, str], str]:
    """Why a change need not be noticed, by module and name."""
    told = yaml.safe_load((HERE / "survivors.yaml").read_text("utf-8")) or []
    return {key(group["module"], change): group["why"] for group in told for change in group["changes"]}


def modules(part: str) -> list[str]:
    """The files of a part, from the project's root."""
    return [str(path.relative_to(ROOT)) for name in PARTS[part][0].split()
            for path in sorted((ROOT / "simulator").glob(f"{name}.py"))]


def tests(part: str) -> list[str]:
    """The files of tests that are asked about a part."""
    return [f"{ROOT}/tests/{name if '/' in name else f'simulator/test_{name}'}.py"
            for name in PARTS[part][1].split()]


def plant(part: str, wanted: argparse.Namespace) -> Score:
    """Plant errors in a part, and see which are noticed."""
    there = {module: mutants(ROOT, module) for module in modules(part)}
    chosen = [mutant for module, all_of_it in there.items()
              for mutant in sampled(all_of_it, wanted.sample, f"{wanted.seed} {module}")]
    answer = forked(lambda: collected(tests(part), lambda at: _late(at, chosen, wanted.budget)))
    if answer is None:
        raise SystemExit(f"{part}: its tests cannot be run")
    ground, noticed = answer
    for at, mutant in enumerate(chosen):
        if mutant.early:
            noticed[at] = _told(mutant, ground.plant_early(mutant))
    return Score(part, sum(map(len, there.values())), len(chosen),
                 [mutant for at, mutant in enumerate(chosen) if not noticed[at]])


def _late(at: Field, chosen: Sequence[Mutant], budget: float) -> tuple[Ground, dict[int, str]]:
    """Plant the errors that are inside of functions; what each test is worth is told with the tests that noticed."""
    files = {str(ROOT / mutant.module) for mutant in chosen}
    ran = forked(lambda: watched(at, files)) or []
    print(f"{len(ran)} tests, {sum(each.seconds for each in ran):.0f} s", file=sys.stderr)
    ground = Ground(ROOT, ran, budget)
    return ground, {place: _told(mutant, ground.plant(at, mutant))
                    for place, mutant in enumerate(chosen) if not mutant.early}


def _told(mutant: Mutant, by: str) -> str:
    print(f"{mutant.module}:{mutant.lines[0]}: {mutant.name}  {f'[{by}]' if by else 'NOT NOTICED'}", file=sys.stderr)
    return by


def sampled(there: Sequence[Mutant], most: int, seed: str) -> list[Mutant]:
    """So many of them, in their order; all if `most` is 0 or there are no more."""
    if not most or len(there) <= most:
        return list(there)
    return [there[at] for at in sorted(random.Random(seed).sample(range(len(there)), most))]


def reasons(scores: Sequence[Score], known: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, int, str]]:
    """A line a reason: the part, how many changes go unnoticed for it, and the reason."""
    for score in scores:
        why = Counter(known.get(mutant.key, "?") for mutant in score.alive)
        yield from ((score.part, count, reason) for reason, count in why.items())


if __name__ == "__main__":
    raise SystemExit(main())
