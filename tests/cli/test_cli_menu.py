"""The menu of commands: it says of each what the command says of itself, and a command is loaded when it is chosen."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from simulator.cli.app import Later, command


def commands(group: Any, path: str = "batchsim") -> Iterator[tuple[str, Later]]:
    for name, each in group.commands.items():
        if isinstance(each, Later):
            yield f"{path} {name}", each
        else:
            yield from commands(each, f"{path} {name}")


@pytest.mark.parametrize(("path", "later"), [*commands(command())])
def test_the_menu_says_what_the_command_says(path: str, later: Later) -> None:
    first, _, _ = inspect.cleandoc(later.whole.help).partition("\n\n")
    assert " ".join(first.split()) == later.help


def test_a_shell_can_ask_for_all_flags_of_a_command() -> None:
    context = dict(commands(command()))["batchsim trace describe"].make_context("describe", [], resilient_parsing=True)
    assert {"--seed", "--trace-format", "--output"} <= {name for each in context.command.params for name in each.opts}
