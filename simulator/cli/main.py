"""`main`: run a command line; every error becomes one line on stderr and an exit status.

0 done, 1 an honest no, 2 wrong input, 3 nothing compared, 130 interrupted, 141 nobody reads the output, 70 our
own fault.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from cost_models import CostModelError
from simulator.cli.lines import note
from simulator.errors import InputError, PolicyError, StalledError
from simulator.policies.loading import PREFIX, fault_in_policy_file
from simulator.scenario import Scenario
from traces import TraceError

DEBUG = " (run again with --debug for the traceback)"
DONE, WRONG_INPUT, OUR_FAULT, INTERRUPTED, CLOSED_PIPE = 0, 2, 70, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; its exit status. Whatever goes wrong is one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _stand_in_for_closed_streams()
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError as error:
        _give_up_stdout()
        return _complain(error) if fault_in_policy_file(error) else CLOSED_PIPE
    except KeyboardInterrupt:
        note("batchsim: interrupted")
        return INTERRUPTED
    except SystemExit as end:
        if not fault_in_policy_file(end):
            raise    # the answer to a shell that completes
        return _complain(end)
    except BaseException as error:    # also what a policy file raises to leave
        if "--debug" in arguments:
            traceback.print_exception(error)
        _give_up_stdout()
        return _complain(error)


def _run(arguments: list[str]) -> int:
    """Parse and call. The shell's questions for completions take typer's own way."""
    import typer

    from simulator.cli.app import app
    command = typer.main.get_command(app)
    if "_BATCHSIM_COMPLETE" in os.environ:
        command.main(arguments, prog_name="batchsim")
    try:
        with command.make_context("batchsim", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:    # typer leaves so after a completion script, rich when nobody reads its help
        if fault_in_policy_file(end):
            raise
        closed = isinstance(end.__context__, BrokenPipeError)
        return CLOSED_PIPE if closed else end.code if isinstance(end.code, int) else DONE
    return DONE


def _stand_in_for_closed_streams() -> None:
    """Python has no stream where the caller closed one; then words go nowhere."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")    # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")    # noqa: SIM115


def _give_up_stdout() -> None:
    """Where stdout takes no more, let what is left go nowhere, or Python complains of it at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: BaseException) -> int:
    """Say what is wrong in one line; whose fault it is, as a status."""
    if hasattr(error, "format_message"):    # the parser's; where its class lives depends on the version of typer
        note(f"batchsim: {_usage(error)}")
    elif isinstance(error, InputError | TraceError | CostModelError):
        note(f"batchsim: {_as_flag(str(error))}")
    elif isinstance(error, StalledError) or (
            isinstance(error, PolicyError) and any(name.startswith(PREFIX) for name in sys.modules)):
        note(f"batchsim: {error}{_raised(error)}")
    elif where := fault_in_policy_file(error):
        note(f"batchsim: {where}{DEBUG}")
    elif isinstance(error, OSError):
        note(f"batchsim: {_system(error)}")
    else:
        note(f"batchsim: internal error: {type(error).__name__}: {error}; run again with --debug for the traceback")
        return OUR_FAULT
    return WRONG_INPUT


def _raised(error: BaseException) -> str:
    """The way to a traceback, where there is one of a policy."""
    return DEBUG if error.__cause__ is not None and fault_in_policy_file(error.__cause__) else ""


def _usage(error: BaseException) -> str:
    """The parser's complaint, in the form of all others."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "batchsim"
    if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        near = getattr(error, "possibilities", None)
        hint = f"did you mean '{near[0]}'?" if near else f"see `{path} --help`"
        return f"unknown option '{option}': {hint}"
    text = error.format_message().rstrip(".")    # type: ignore[attr-defined]
    return f"{text[:1].lower()}{text[1:]}: see `{path} --help`"


def _as_flag(text: str) -> str:
    """A message about a field of Scenario, about the flag that sets it."""
    first, space, rest = text.partition(" ")
    flag = first in Scenario.__dataclass_fields__ and space and rest.startswith("must")
    return f"--{first.replace('_', '-')} {rest}" if flag else text


def _system(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename is not None else reason
