"""The flags that say which requests come and when, and what kind of client sends them: see `options`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from typer import Option

from simulator.cli import complete, values
from simulator.cli.flags import Flags
from simulator.scenario import Scenario

TRAFFIC, CLIENT = "Traffic", "Client"


@dataclass(frozen=True)
class Shaped(Flags):
    """What is done to the trace, when its requests come, and how many and how long the client waits for."""

    mix: Annotated[list[str] | None, Option(metavar="NAME|FILE[=X]", rich_help_panel=TRAFFIC, help=(
        "Another trace whose requests come too, X times as fast as recorded (1); repeatable."),
        autocompletion=complete.traces)] = None
    tenants: Annotated[list[str] | None, Option(metavar="NAME[=X]", rich_help_panel=TRAFFIC, help=(
        "Only these tenants, each X times as fast as recorded (1), such as chat=2,code."))] = None
    sample: Annotated[str | None, Option(metavar="SHARE", rich_help_panel=TRAFFIC, help=(
        "Only this share of the requests; load over time and lengths stay as they are."))] = None
    prompt_scale: Annotated[str, Option(metavar="X", rich_help_panel=TRAFFIC, help=(
        "Make prompts X times as long."))] = f"{Scenario.prompt_scale:g}"
    output_scale: Annotated[str, Option(metavar="X", rich_help_panel=TRAFFIC, help=(
        "Make outputs, and the lengths that the trace declares, X times as long."))] = f"{Scenario.output_scale:g}"
    repeat: Annotated[str, Option(metavar="N", rich_help_panel=TRAFFIC, help=(
        "Go through the trace N times."))] = str(Scenario.repeat)
    shape: Annotated[str | None, Option(metavar="SHAPE", rich_help_panel=TRAFFIC, help=(
        "Rates over time: ramp:1-10/300s, stage:5/60s,10/60s (both with new arrivals), burst:x5/10s@60s, joined by "
        "+."))] = None
    rate_scale: Annotated[str, Option(metavar="X", rich_help_panel=TRAFFIC, help=(
        "Run the trace's own times X times as fast."))] = f"{Scenario.rate_scale:g}"
    cap_gaps: Annotated[str | None, Option(metavar="S", rich_help_panel=TRAFFIC, help=(
        "No gap between these times, and no think time, longer than S seconds."))] = None
    request_rate: Annotated[str | None, Option(metavar="R|inf", rich_help_panel=TRAFFIC, help=(
        "New arrivals at R requests a second instead of the trace's own times; inf: all at 0."))] = None
    burstiness: Annotated[str, Option(metavar="X|inf", rich_help_panel=TRAFFIC, help=(
        "Of new arrivals: 1 is Poisson, below is burstier, inf has constant gaps."))] = f"{Scenario.burstiness:g}"
    turns: Annotated[str, Option(metavar="wait|recorded", rich_help_panel=TRAFFIC, help=(
        "Later turns of a conversation wait for the answer to the one before and think; or come at their own "
        "times."))] = Scenario.turns
    require_prefixes: Annotated[bool, Option("--require-prefixes", metavar="", rich_help_panel=TRAFFIC, help=(
        "Decline a trace that does not tell which prompts begin alike."))] = False
    too_long: Annotated[str, Option(metavar="reject|truncate", rich_help_panel=TRAFFIC, help=(
        "What becomes of requests above --max-model-len; truncate cuts the end of the prompt."))] = Scenario.too_long
    max_concurrency: Annotated[str | None, Option(metavar="N|inf", rich_help_panel=CLIENT, help=(
        "Most requests outstanding at the client."))] = None
    ttft_timeout: Annotated[str | None, Option(metavar="S", rich_help_panel=CLIENT, help=(
        "Cancel a request without a first token after S seconds; not with a saturated load."))] = None
    request_timeout: Annotated[str | None, Option(metavar="S", rich_help_panel=CLIENT, help=(
        "Cancel a request without its whole answer after S seconds; not with a saturated load."))] = None
    max_retries: Annotated[str, Option(metavar="N", rich_help_panel=CLIENT, help=(
        "Send a request again up to N times, if it timed out or was refused."))] = str(Scenario.max_retries)
    retry_backoff: Annotated[str, Option(metavar="S", rich_help_panel=CLIENT, help=(
        "Seconds before the first of these tries; doubled each time."))] = f"{Scenario.retry_backoff:g}"

    @property
    def shaping(self) -> dict[str, Any]:
        """The fields of Scenario that these flags set."""
        return {
            "mix": values.weights("--mix", self.mix),
            "tenants": values.weights("--tenants", self.tenants),
            "sample": values.number("--sample", self.sample),
            "prompt_scale": values.number("--prompt-scale", self.prompt_scale),
            "output_scale": values.number("--output-scale", self.output_scale),
            "repeat": values.count("--repeat", self.repeat),
            "shape": self.shape,
            "rate_scale": values.number("--rate-scale", self.rate_scale),
            "cap_gaps": values.number("--cap-gaps", self.cap_gaps),
            "request_rate": values.number("--request-rate", self.request_rate),
            "burstiness": values.number("--burstiness", self.burstiness),
            "turns": self.turns,
            "require_prefixes": self.require_prefixes,
            "too_long": self.too_long,
            "max_concurrency": values.limit("--max-concurrency", self.max_concurrency),
            "ttft_timeout": values.number("--ttft-timeout", self.ttft_timeout),
            "request_timeout": values.number("--request-timeout", self.request_timeout),
            "max_retries": values.count("--max-retries", self.max_retries),
            "retry_backoff": values.number("--retry-backoff", self.retry_backoff),
        }
