"""`batchsim explain`: what happens inside a batch. In a notebook: `sim.explain(trace).told()` and `.answers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer import Option

from simulator.cli import complete, values
from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import ENGINE, FILES, Common, Simulated
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.shaping import TRAFFIC
from simulator.cli.tables import print_table
from simulator.policies.making import make_policies
from simulator.scenario import scenario_of
from simulator.scenarios import record
from simulator.scenarios.held import held
from simulator.studies.explain import Explanation
from simulator.studies.explain import explain as study
from simulator.studies.explain.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINDINGS = "explain.json"
LEDGER_FIGURES = {name: f"ledger-{name}.svg" for name in ("slots", "tokens", "kv")}
FIGURES = ("strip.svg", *LEDGER_FIGURES.values(), "paging.svg", "contention.svg", "exhaustion.svg")

UNUSED = {"rate_scale": "--request-rate sets the load of the last two questions, and everything else is saturated",
          "error_band": "run, compare and plan give it", "isolation": "a run tells it: batchsim run --isolation",
          "prices": "a run tells the bill, and a plan what a million tokens cost"}


@with_flags
def explain(simulated: Simulated, common: Common,
            policies: Annotated[str | None, Option(metavar="NAME,NAME", autocompletion=complete.policies,
                                                   rich_help_panel=ENGINE, help=(
                "Under which to follow the request; FILE.py:CLASS for one of your own. Not given: static and that of "
                "the scenario, else vllm."))] = None,
            request: Annotated[str, Option(metavar="ROW|shortest", rich_help_panel=TRAFFIC, help=(
                "The request to follow, by its row of the trace from 0 on; shortest: the shortest answer among those "
                "that get the first slots."))] = "shortest",
            result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
                f"Write {FINDINGS} and the figures there. Replaces only what an earlier run wrote."))] = None,
            force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES, help=(
                "Replace any file."))] = False) -> None:
    """Follow one short request through its batch; say why memory is paged, what prefill does, what a full pool does.

    It takes the first 1,000 requests unless --num-prompts says how many, and for the last question the first 200.

    --request-rate sets the load of the last two questions.
    """
    names, options = simulated.policies("--policies", policies), simulated.scenario(common)
    simulated.refuse_idle(scenario_of(**options), **UNUSED)
    followed = request if request == "shortest" else values.count("--request", request)
    directory = None if result_dir is None else ResultDirectory(result_dir, force=force)
    if directory:
        directory.check([FINDINGS, *FIGURES])
        check_drawing()
    settings = simulated.knobs_for(*names)
    asked = held(scenario_of(**options).but(policy=make_policies(names, settings)[-1]))
    with Bar("explain", unit="parts", quiet=common.quiet) as bar:
        found = study(policies=names, request=followed or 0, settings=settings, progress=bar.one, **options)
    document = as_json(found.records() | {"scenario": record(asked)})
    if directory:
        directory.write({FINDINGS: document.encode(), **as_files(_figures(found))})
    if common.json:
        print(document, end="")
        return
    _print(answers(), found)
    if directory and not common.quiet:
        note(f"written to {directory.path}/: {FINDINGS}, {', '.join(FIGURES)}")


def _print(console: Console, found: Explanation) -> None:
    """The story, then the ledgers, then the questions with their tables."""
    for fact in found.facts():
        console.print(Text(fact, style="dim"))
    console.print()
    console.print(Text(f"What happened at the end of one short sequence ({found.alike})", style="bold"))
    for label, words in found.told().items():
        _print_sentence(console, Text.assemble((f"{label}: ", "bold"), words))
    for table in [*found.moments(), *found.ledgers()]:
        print_table(console, table)
    for answer in found.answers:
        console.print()
        print_answer(console, answer)
        print_table(console, answer.table)


def print_answer(console: Console, answer: Answer) -> None:
    """A question and its answer in words."""
    console.print(Text(answer.question, style="bold"))
    for sentence in answer.told:
        _print_sentence(console, Text(sentence))


def _print_sentence(console: Console, text: Text) -> None:
    console.print(Padding(text, (0, 0, 0, 2), expand=False))


def _figures(found: Explanation) -> dict[str, Figure]:
    from simulator.plots import contention_figure, exhaustion_figure, ledger_figure, paging_figure, strip_figure
    memory, prefill, full = (found.answer(key) for key in ("paging", "contention", "exhaustion"))
    tight = full.data["tight"][0]["share_of_peak"]
    return {"strip.svg": strip_figure(found.strips(), found.request),
            **{file: ledger_figure(found.deployed, name) for name, file in LEDGER_FIGURES.items()},
            "paging.svg": paging_figure(memory.frame("memories")),
            "contention.svg": contention_figure(prefill.frame("budgets")),
            "exhaustion.svg": exhaustion_figure(full.frame("pools"), full.frame("kv"), full.frame("preemptions"),
                                                tight)}
