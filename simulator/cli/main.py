"""`main`: run a command line; every error becomes one line on stderr and an exit status.

0 done, 1 an honest no, 2 wrong input, 3 nothing compared, 130 interrupted (129 and 143 by other signals), 141 nobody
reads the output, 70 our own fault. Nothing that takes long to import stands above the functions: from the first moment
on, whoever interrupts gets a line and no traceback.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Sequence

from simulator.cli.lines import note, sink
from simulator.cli.stopping import Stopped, stoppable

DONE, SIGNALLED, CLOSED_PIPE = 0, 128, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, the process's own if none is given; its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with stoppable(whole=argv is None) as stopper:
        try:
            _settle_streams()
            status = _run(arguments, stopper.listen)
            sys.stdout.flush()
            return status if stopper.stopped is None else _told(stopper.stopped, arguments)
        except SystemExit as end:
            if not _theirs(end) and stopper.stopped is None:
                raise    # the answer to a shell that completes
            return _told(stopper.stopped or end, arguments)
        except BaseException as error:    # also what a policy file raises to leave
            _give_up_stdout()
            return _told(stopper.stopped or error, arguments)


def _told(error: BaseException, arguments: Sequence[str]) -> int:
    """The exit status of what came in between, after a line if there is anybody to read it."""
    if isinstance(error, KeyboardInterrupt):
        number = error.signal if isinstance(error, Stopped) else signal.SIGINT
        by = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        note(f"batchsim: {by}")
        return SIGNALLED + number
    if isinstance(error, BrokenPipeError) and not _theirs(error):
        return CLOSED_PIPE
    if "--debug" in arguments:
        import traceback
        traceback.print_exception(error)
    from simulator.cli.complaints import complain
    return complain(error)


def _theirs(error: BaseException) -> bool:
    """Whether it comes from a policy file; there is none before there are policies."""
    loading = sys.modules.get("simulator.policies.loading")
    return loading is not None and loading.fault_in_policy_file(error) is not None


def _run(arguments: list[str], listen: Callable[[], None]) -> int:
    """Parse and call. The shell's questions for completions take typer's own way."""
    import typer

    from simulator.cli.app import command, load
    tree = command()
    if "_BATCHSIM_COMPLETE" in os.environ:
        tree.main(arguments, prog_name="batchsim")
    try:
        with tree.make_context("batchsim", list(arguments)) as context:
            load(tree, arguments)
            listen()
            tree.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:    # typer leaves so after a completion script, rich when nobody reads its help
        if _theirs(end):
            raise
        closed = isinstance(end.__context__, BrokenPipeError)
        return CLOSED_PIPE if closed else end.code if isinstance(end.code, int) else DONE
    return DONE


def _settle_streams() -> None:
    """Words go nowhere where the caller closed a stream, and what a terminal cannot show is written as an escape."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")    # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")    # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """What was printed before is worth showing, if stdout takes it."""
    try:
        sys.stdout.flush()
    except OSError:
        sink(sys.stdout)
