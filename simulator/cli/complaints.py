"""What went wrong, in one line, and whose fault it is, as an exit status."""

from __future__ import annotations

import re
import sys

from cost_models import CostModelError
from simulator.cli.lines import note
from simulator.errors import InputError, PolicyError, StalledError
from simulator.policies.loading import PREFIX, fault_in_policy_file
from simulator.scenario import Scenario
from simulator.scenario_checks import READING
from traces import TraceError

WRONG_INPUT, OUR_FAULT = 2, 70
DEBUG = " (run again with --debug for the traceback)"


def complain(error: BaseException) -> int:
    """Say what is wrong in one line; whose fault it is, as a status."""
    if hasattr(error, "format_message"):    # the parser's; where its class lives depends on the version of typer
        note(f"batchsim: {_usage(error)}")
    elif isinstance(error, InputError | TraceError | CostModelError):
        note(f"batchsim: {_as_flag(str(error))}")
    elif isinstance(error, StalledError) or (
            isinstance(error, PolicyError) and any(name.startswith(PREFIX) for name in sys.modules)):
        note(f"batchsim: {error}{_way_to_traceback(error)}")
    elif where := fault_in_policy_file(error):
        note(f"batchsim: {where}{DEBUG}")
    elif isinstance(error, OSError):
        note(f"batchsim: {_system(error)}")
    else:
        note(f"batchsim: internal error: {type(error).__name__}: {error}; run again with --debug for the traceback")
        return OUR_FAULT
    return WRONG_INPUT


def _way_to_traceback(error: BaseException) -> str:
    """Where a policy file raised an error there is a traceback to look at."""
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
    found = re.match(r"(\w+)(?: of reading)?((?:,[^,]+,)? must .*)", text)
    known = found and found[1] in (*Scenario.__dataclass_fields__, *READING)
    return f"--{found[1].replace('_', '-')}{found[2]}" if found and known else text


def _system(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename is not None else reason
