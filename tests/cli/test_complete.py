"""What the shell completes: names that the command then takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simulator.cli import complete

WORDS: dict[Callable[[str], list[str]], str] = {
    complete.traces: "azure-code-2023", complete.public_traces: "qwen-coder-full", complete.models: "llama-3.1-8b",
    complete.gpus: "h100-80", complete.cost_models: "roofline", complete.policies: "vllm", complete.kinds: "policies",
    complete.workloads: "million", complete.reproductions: "all", complete.loads: "saturated",
    complete.routers: "round-robin", complete.backends: "dask", complete.overflows: "shed",
    complete.engines: "vllm", complete.modes: "both", complete.devices: "cpu",
}


@pytest.mark.parametrize(("words", "one"), WORDS.items(), ids=lambda each: getattr(each, "__name__", each))
def test_what_begins_as_typed_is_named_and_nothing_else(words: Callable[[str], list[str]], one: str) -> None:
    assert one in words(one[:3])
    assert all(word.startswith(one[:3]) for word in words(one[:3]))
    assert set(words(one[:3])) <= set(words(""))
    assert words("no such word") == []


def test_a_policy_is_completed_after_the_last_comma_of_a_list() -> None:
    assert "static,orca" in complete.policies("static,or")
    assert all(word.startswith("static,or") for word in complete.policies("static,or"))
