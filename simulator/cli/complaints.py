"""What went wrong, in one line, and whose fault it is, as an exit status."""

from __future__ import annotations

import re
import sys

from cost_models import CostModelError
from simulator.cli.elsewhere import hint
from simulator.cli.lines import brief, note
from simulator.cli.options import Simulated
from simulator.errors import InputError, PolicyError, StalledError
from simulator.mistaken import READING
from simulator.policies.loading import PREFIX, fault_in_policy_file
from simulator.scenario import Scenario
from traces import TraceError

WRONG_INPUT, OUR_FAULT = 2, 70
FLAGS = {*Simulated.__dataclass_fields__, "seed"} & {*Scenario.__dataclass_fields__}
"""Fields of Scenario that every command which simulates has a flag for."""
DEBUG = " (run again with --debug for the traceback)"


def complain(error: BaseException) -> int:
    """Say what is wrong in one line; whose fault it is, as a status."""
    text, status = _judged(error)
    note(f"batchsim: {brief(text)}")
    return status


def _judged(error: BaseException) -> tuple[str, int]:
    """What is wrong, and the status that tells whose fault it is."""
    if hasattr(error, "format_message"):    # the parser's; where its class lives depends on the version of typer
        return _usage(error), WRONG_INPUT
    if isinstance(error, InputError | TraceError | CostModelError):
        return _as_flag(str(error)), WRONG_INPUT
    if isinstance(error, StalledError) or (
            isinstance(error, PolicyError) and any(name.startswith(PREFIX) for name in sys.modules)):
        return f"{error}{_way_to_traceback(error)}", WRONG_INPUT
    if where := fault_in_policy_file(error):
        return f"{where}{DEBUG}", WRONG_INPUT
    if isinstance(error, OSError):
        return _system(error), WRONG_INPUT
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({error}): ask for less at once, such as --num-prompts", WRONG_INPUT
    return f"internal error: {type(error).__name__}: {error}; run again with --debug for the traceback", OUR_FAULT


def _way_to_traceback(error: BaseException) -> str:
    """Where a policy file raised an error there is a traceback to look at."""
    return DEBUG if error.__cause__ is not None and fault_in_policy_file(error.__cause__) else ""


def _usage(error: BaseException) -> str:
    """The parser's complaint, in the form of all others."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "batchsim"
    if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        return f"unknown option '{option}': {hint(context, option, getattr(error, 'possibilities', None) or ())}"
    text = error.format_message().rstrip(".")    # type: ignore[attr-defined]
    return f"{text[:1].lower()}{text[1:]}: see `{path} --help`"


def _as_flag(text: str) -> str:
    """A message about a field of Scenario, about the flag that sets it."""
    found = re.match(r"(\w+)(?: of reading)?((?:,[^,]+,)? must .*)", text)
    if found and found[1] in (*Scenario.__dataclass_fields__, *READING):
        return f"--{found[1].replace('_', '-')}{found[2]}"
    taken = re.match(r"unknown (knob of [^']*) '(\w+)'", text)
    if taken and taken[2] in FLAGS:
        return f"{taken[2]} is no {taken[1]}: give --{taken[2].replace('_', '-')}"
    return text


def _system(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    return f"{reason}: is the current directory gone?" if isinstance(error, FileNotFoundError) else reason
