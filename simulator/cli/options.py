"""The flags that commands share, as dataclasses: see `flags` for how a command takes one.

Spelled and counted as `vllm bench serve` does where it has the flag. Numbers arrive as text, so that inf and the
refusals are the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any

from typer import Option

from simulator.cli import complete, values
from simulator.cli.cluster import Clustered
from simulator.cli.flags import Flags
from simulator.cli.from_file import FromFile
from simulator.cli.shaping import TRAFFIC, Shaped
from simulator.errors import choose
from simulator.kinds import load_trace
from simulator.memory.base import UNLIMITED
from simulator.scenario import Scenario
from simulator.summary import LATENCIES, date
from traces import Trace

RESULT_DIR = "batchsim-out"
ENGINE, MEASURES, FILES, COMMON = "Model, GPU and engine", "Measures", "Files", "Common"

ChosenPolicy = Annotated[str | None, Option(metavar="NAME|FILE.py:CLASS", autocompletion=complete.policies,
                                            rich_help_panel=ENGINE, help=(
    "A policy, or a class of your own, whose file is run; vllm if not given."))]
ChosenLoad = Annotated[str | None, Option(metavar="trace|saturated", autocompletion=complete.loads,
                                          rich_help_panel=TRAFFIC, help=(
    "The trace's own times, or all requests at 0; trace if not given."))]
Force = Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES, help="Replace any file.")]


def _default(field: str) -> str:
    """The default of a number of Scenario, as it would be typed."""
    return f"{getattr(Scenario, field):g}"


@dataclass(frozen=True)
class Told(Flags):
    """Flags of every command: how it tells what it does."""

    quiet: Annotated[bool, Option("--quiet", metavar="", help="No progress.", rich_help_panel=COMMON)] = False
    json: Annotated[bool, Option("--json", metavar="", help="Print one JSON document and nothing else.",
                                 rich_help_panel=COMMON)] = False
    debug: Annotated[bool, Option("--debug", metavar="", help="Show the traceback of an error.",
                                  rich_help_panel=COMMON)] = False


@dataclass(frozen=True)
class Common(Told):
    """Flags of every command that may draw something at random."""

    seed: Annotated[str, Option(metavar="N", help="Of everything that is drawn.", rich_help_panel=COMMON)] = (
        _default("seed"))

    @property
    def seed_number(self) -> int:
        """The seed."""
        return values.count("--seed", self.seed) or 0


@dataclass(frozen=True)
class Named(Flags):
    """Which trace."""

    trace: Annotated[str, Option(metavar="NAME|FILE", autocompletion=complete.traces, rich_help_panel=TRAFFIC, help=(
        "A bundled trace (see `batchsim list traces`) or a file."))] = str(Scenario.trace)


@dataclass(frozen=True)
class Reading(Flags):
    """How a file is read."""

    trace_format: Annotated[str | None, Option(metavar="FORMAT", rich_help_panel=TRAFFIC, help=(
        "Format of the file; found from its content if not given."))] = None
    columns: Annotated[list[str] | None, Option(metavar="ROLE=NAME", rich_help_panel=TRAFFIC, help=(
        "Columns that are not named as usual: arrival=A,prompt=P,output=O, max_tokens=, tenant=, priority=, session=, "
        "think=."))] = None
    unit: Annotated[str | None, Option(metavar="s|ms|us|ns", rich_help_panel=TRAFFIC, help=(
        "Unit of arrivals that are plain numbers."))] = None
    lenient: Annotated[bool, Option("--lenient", metavar="", rich_help_panel=TRAFFIC, help=(
        "Skip and count bad rows instead of refusing the file."))] = False
    limit: Annotated[str | None, Option(metavar="N", rich_help_panel=TRAFFIC, help=(
        "Read no more than N good rows of the file; those outside of the window do not count."))] = None
    window: Annotated[str | None, Option(metavar="HH:MM-HH:MM", rich_help_panel=TRAFFIC, help=(
        "Only the requests of that time, such as 10:00-11:00, from the midnight before the first row on; hours may "
        "exceed 24."))] = None
    prompts: Annotated[str | None, Option(metavar="cumulative|increments", rich_help_panel=TRAFFIC, help=(
        "Whether the prompts of later turns have the turns before them, if the format does not tell."))] = None

    @property
    def reading(self) -> dict[str, Any]:
        """What was said of it, as `traces.load` takes it."""
        said = {"format": self.trace_format, "unit": self.unit, "lenient": self.lenient or None,
                "columns": values.pairs("--columns", self.columns, split=True, empty=True) or None,
                "limit": values.count("--limit", self.limit), "window": self.window, "prompts": self.prompts}
        return {name: value for name, value in said.items() if value is not None}

    def load(self, name: str, common: Common) -> Trace:
        """The trace of that name, or in that file, as it stands there."""
        return load_trace(name, seed=common.seed_number, **self.reading)


@dataclass(frozen=True)
class Simulated(Clustered, Shaped, Reading, Named, FromFile):
    """The fields of Scenario as flags, but policy and load, which the commands ask for in their own ways."""

    num_prompts: Annotated[str | None, Option(metavar="N", rich_help_panel=TRAFFIC, help=(
        "Stop after N requests that the model can hold. Not given: as many as the command says, else the whole "
        "trace."))] = None
    max_tokens: Annotated[str | None, Option(metavar="exact|N|xF|model", rich_help_panel=TRAFFIC, help=(
        "Output length that requests declare. Not given: the trace's own column, else its p99 output rounded up to "
        "a power of two. Only N cuts longer outputs."))] = None
    max_model_len: Annotated[str | None, Option(metavar="N|inf", rich_help_panel=ENGINE, help=(
        "Longest prompt plus output in tokens; the model's if not given."))] = None
    model: Annotated[str, Option(metavar="NAME|FILE", autocompletion=complete.models, rich_help_panel=ENGINE, help=(
        "A model, or a YAML file with a shape of your own."))] = str(Scenario.model)
    gpu: Annotated[str, Option(metavar="NAME", autocompletion=complete.gpus, rich_help_panel=ENGINE, help=(
        "A GPU."))] = Scenario.gpu
    tensor_parallel_size: Annotated[str, Option(metavar="N", rich_help_panel=ENGINE, help=(
        "GPUs that share the model."))] = _default("tensor_parallel_size")
    dtype: Annotated[str, Option(metavar="bf16|fp8", rich_help_panel=ENGINE, help="Weights.")] = Scenario.dtype
    kv_dtype: Annotated[str, Option(metavar="bf16|fp8", rich_help_panel=ENGINE, help="KV cache.")] = Scenario.kv_dtype
    gpu_memory_utilization: Annotated[str, Option(metavar="X", rich_help_panel=ENGINE, help=(
        "Share of the GPU memory that the engine takes."))] = _default("gpu_memory_utilization")
    kv_capacity_tokens: Annotated[str | None, Option(metavar="N|inf", rich_help_panel=ENGINE, help=(
        "Size of the KV cache in tokens; what the GPU leaves if not given."))] = None
    cost_model: Annotated[str, Option(metavar="NAME|FILE", autocompletion=complete.cost_models, rich_help_panel=ENGINE,
                                      help="What a step costs (see `batchsim list cost-models`).")] = (
        str(Scenario.cost_model))
    noise: Annotated[str | None, Option(metavar="profile|X", rich_help_panel=ENGINE, help=(
        "Steps last longer or shorter at random: as the errors of the calibrated cost model scatter, or by a standard "
        "deviation of X times the mean. The mean stays."))] = None
    error_band: Annotated[str | None, Option(metavar="stated|PERCENT", rich_help_panel=MEASURES, help=(
        "Also simulate with every step shorter and longer, by the bias that the cost model states or by so many "
        "percent, and say what that does to throughput, TTFT and TPOT."))] = None
    cuda_graph_sizes: Annotated[str, Option(metavar="vllm|none|LIST", rich_help_panel=ENGINE, help=(
        "Pad decode-only steps to these batch sizes, such as 1,2,4,8; vllm: those that it captures."))] = (
        Scenario.cuda_graph_sizes)
    scheduler_overhead: Annotated[list[str] | None, Option(metavar="[POLICY:]MS,MS", rich_help_panel=ENGINE, help=(
        "Host time that the scheduler adds to a step, and more for each running request, such as vllm:0.1,0.016; "
        "repeatable."))] = None
    request_overhead: Annotated[str | None, Option(metavar="MS", rich_help_panel=ENGINE, help=(
        "Time of a request outside the engine's steps (API, tokenising), in TTFT and E2EL; the cost model's if not "
        "given."))] = None
    settings: Annotated[list[str] | None, Option("--set", metavar="KNOB=VALUE", rich_help_panel=ENGINE, help=(
        "Set a knob of the policy, such as max_num_seqs=32, or POLICY.KNOB=VALUE for one of several; repeatable. "
        "`batchsim list policies --verbose` shows them."))] = None
    goodput: Annotated[list[str] | None, Option(metavar="METRIC:MS", rich_help_panel=MEASURES, help=(
        "Service objectives in milliseconds, such as ttft:500,tpot:50; repeatable."))] = None

    prices: Annotated[list[str] | None, Option(metavar="GPU=DOLLARS", rich_help_panel=MEASURES, help=(
        "Dollars for an hour of one GPU, such as h100-80=2.5,a100-80=1.2, beside those of a file; without any, costs "
        "are told in GPU-hours."))
    ] = None

    def flags(self, common: Common) -> dict[str, Any]:
        return {
            "trace": self.trace,
            "reading": self.reading,
            **self.shaping,
            **self.cluster,
            "num_prompts": values.limit("--num-prompts", self.num_prompts),
            "max_tokens": self.max_tokens,
            "max_model_len": values.limit("--max-model-len", self.max_model_len, UNLIMITED),
            "model": self.model,
            "gpu": self.gpu,
            "dtype": self.dtype,
            "kv_dtype": self.kv_dtype,
            "tensor_parallel_size": values.count("--tensor-parallel-size", self.tensor_parallel_size),
            "cost_model": self.cost_model,
            "noise": values.number("--noise", self.noise) if self.noise not in (None, "profile") else self.noise,
            "error_band": self.error_band if self.error_band in (None, "stated") else values.number(
                "--error-band", self.error_band),
            "cuda_graph_sizes": self.cuda_graph_sizes,
            "scheduler_overhead": values.overheads(self.scheduler_overhead),
            "request_overhead": values.number("--request-overhead", self.request_overhead),
            "gpu_memory_utilization": values.number("--gpu-memory-utilization", self.gpu_memory_utilization),
            "kv_capacity_tokens": values.limit("--kv-capacity-tokens", self.kv_capacity_tokens, inf),
            "goodput": values.goodput(self.goodput),
            "prices": values.numbers("--prices", self.prices),
            "seed": common.seed_number,
        }

    @property
    def knobs(self) -> dict[str, Any]:
        return values.settings(self.settings)


@dataclass(frozen=True)
class Written:
    """Flags of the commands that write."""

    result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
        "Where the files go, batchsim-out if not given. Replaces only what an earlier run wrote there."))] = None
    force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES, help="Replace any file.")] = False
    save_detailed: Annotated[bool, Option("--save-detailed", metavar="", rich_help_panel=FILES, help=(
        "Also write every request."))] = False
    label: Annotated[str | None, Option(metavar="TEXT", rich_help_panel=FILES, help=(
        "A label for the results."))] = None
    metadata: Annotated[list[str] | None, Option(metavar="KEY=VALUE", rich_help_panel=FILES, help=(
        "A note for the results; repeatable."))] = None
    percentile_metrics: Annotated[str | None, Option(metavar="ttft,tpot,...", rich_help_panel=MEASURES, help=(
        f"Latencies to give, of {', '.join(LATENCIES)}; all of them if not given."))] = None
    metric_percentiles: Annotated[str, Option(metavar="50,90,99", rich_help_panel=MEASURES, help=(
        "Percentiles to give of each."))] = "99"

    @property
    def directory(self) -> str:
        """Where the files go."""
        return RESULT_DIR if self.result_dir is None else self.result_dir

    @property
    def asked(self) -> dict[str, Any]:
        """What `Result.to_json` is asked for."""
        date()    # a bad SOURCE_DATE_EPOCH is refused before any work is done
        metrics = self.percentile_metrics
        names = LATENCIES if metrics is None else values.words("--percentile-metrics", metrics)
        return {"label": self.label, "metadata": values.pairs("--metadata", self.metadata),
                "percentiles": values.percentiles("--metric-percentiles", self.metric_percentiles),
                "metrics": tuple(choose("latency metric", name, LATENCIES) for name in names)}
