"""Planted errors, and whether the tests notice: one collection of the tests, then a fork of that process for each.

A fork gets the changed code of the module's functions and runs the tests that pass through the changed lines, those
first that noticed most until then. What is outside of all functions is planted before anything is imported, so that a
fork of the empty process collects a few files anew. A test that runs ten times as long as it did counts as one that
notices. Examples of hypothesis are few at first, always the same, and never shrunk; an error that nobody notices then
meets all examples that the tests have.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, settings
from mutation import Mutant

Answer = TypeVar("Answer")

EXAMPLES = 10
"""Examples of each hypothesis test at first."""
OFTEN = 15
"""Calls of a function by a test after which its lines are no longer watched."""
LONGEST = 5.0
"""CPU seconds, watched, beyond which a test is not asked."""
PATIENCE = 10
"""A test may take so many times its usual CPU time, and two seconds."""
TO_START = 60.0
"""CPU seconds until the first test runs."""
MEMORY = 4 << 30
"""Bytes of address space that a fork may take."""
OPTIONS = ["-o", "addopts=", "-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "no:xdist",
           "--assert=plain", "-m", "not slow"]


@dataclass
class Ran:
    """One test without any error: its CPU seconds, and the lines of the watched files that it passed through."""

    name: str
    seconds: float
    lines: set[tuple[str, int]] = field(default_factory=set)


def prepare() -> None:
    """Import what is large, so that no fork need do it anew, and see that whoever forks has one thread."""
    for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[threads] = "1"
    for name in ("matplotlib.pyplot", "pandas", "simpy", "typer.testing", "yaml"):
        import_module(name)


def forked(task: Callable[[], Answer]) -> Answer | None:
    """What a task returns in a fork of this process; None if that dies."""
    reading, writing = os.pipe()
    sys.stderr.flush()
    if not (pid := os.fork()):
        os.close(reading)
        try:
            answer = pickle.dumps(task())
            with open(writing, "wb") as pipe:
                pipe.write(answer)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(told) if told else None    # what our own fork has written


class Field:
    """The plugin that takes the place of pytest's loop over the tests."""

    def __init__(self, work: Callable[[Field], None]) -> None:
        self._work, self.failed = work, False
        self.items: list[pytest.Item] = []
        self.functions: list[FunctionType] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = [item for item in session.items if not item.get_closest_marker("xfail")]
        for item in self.items:
            if examples(item):
                limit(item, EXAMPLES)
        gc.collect()
        self.functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        gc.freeze()    # a fork that collects its garbage need not copy what is there already
        self._work(self)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """No traceback is told: that would take longer than most tests."""
        failed = call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception)
        self.failed = self.failed or failed
        return pytest.TestReport(item.nodeid, item.location, {}, "failed" if failed else "passed", None, call.when)

    def run(self, items: Sequence[pytest.Item], seconds: Callable[[str], float]) -> str | None:
        """Run tests until one fails, and tell which. The timer is set to what each may take."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            signal.setitimer(signal.ITIMER_PROF, seconds(item.nodeid))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return item.nodeid
        return None


def examples(item: pytest.Item) -> int:
    """Examples that a hypothesis test asks for; 0 for any other test."""
    function = getattr(item, "function", None)
    if not hasattr(function, "hypothesis"):
        return 0
    usual: settings = vars(function).setdefault("usual", function._hypothesis_internal_use_settings)
    return usual.max_examples


def limit(item: pytest.Item, most: int) -> None:
    """Let a hypothesis test draw so many examples at most, and shrink none."""
    function = item.function    # type: ignore[attr-defined]
    function._hypothesis_internal_use_settings = settings(
        function.usual, max_examples=min(examples(item), most), phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False)


def collected(tests: Sequence[str], work: Callable[[Field], Answer]) -> Answer:
    """Collect tests in this process and do the work with them."""
    answers: list[Answer] = []
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    code = pytest.main([*OPTIONS, *tests], plugins=[Field(lambda at: answers.append(work(at)))])
    if not answers:
        raise SystemExit(f"the tests cannot be collected (pytest ends with {code}): {' '.join(tests)}")
    return answers[0]


def watched(at: Field, files: set[str]) -> list[Ran]:
    """Run each test once, and see which lines of these files it passes through. Long ones are left out."""
    def give_up(*_: object) -> None:
        raise TimeoutError

    found = []
    _limit()
    signal.signal(signal.SIGPROF, give_up)
    for item in at.items:
        ran, calls = Ran(item.nodeid, 0.0), Counter[CodeType]()
        start = time.process_time()
        sys.settrace(_tracer(files, ran.lines, calls))
        failed = at.run([item], lambda _: LONGEST)
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        ran.seconds = time.process_time() - start
        at.failed = False
        if not failed:
            found.append(ran)
    return found


def _tracer(files: set[str], lines: set[tuple[str, int]], calls: Counter[CodeType]) -> Callable[..., Any]:
    def inside(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return inside

    def entering(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename not in files or calls[code] > OFTEN:
            return None
        calls[code] += 1
        return inside(frame, event, None)

    return entering


@dataclass
class Ground:
    """The tests that stand ready, and which of them have noticed most."""

    root: Path
    ran: list[Ran]
    budget: float
    kills: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.seconds = {ran.name: ran.seconds for ran in self.ran}
        self._through: dict[tuple[str, int], set[str]] = defaultdict(set)
        for ran in self.ran:
            for line in ran.lines:
                self._through[line].add(ran.name)

    def _patience(self, name: str) -> float:
        return 2 + PATIENCE * self.seconds[name]

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that pass through it, the sharpest first, for so many seconds of CPU."""
        file = str(self.root / mutant.module)
        names = set().union(*(through for (name, line), through in self._through.items()
                              if name == file and (mutant.early or line in mutant.lines)))
        return list(self._within_budget(sorted(names, key=lambda name: (-self.kills[name], self.seconds[name], name))))

    def _within_budget(self, names: Sequence[str]) -> Iterator[str]:
        spent = 0.0
        for name in names:
            if (spent := spent + self.seconds[name]) > self.budget and spent > self.seconds[name]:
                return
            yield name

    def plant(self, at: Field, mutant: Mutant) -> str:
        """The test that notices an error inside a function; "" if none does."""
        by_name = {item.nodeid: item for item in at.items}
        items = [by_name[name] for name in self.tests(mutant)]
        by = self._told(forked(lambda: self._noticed(at, mutant, items)))
        if not by and (drawn := [item for item in items if examples(item) > EXAMPLES]):
            by = self._told(forked(lambda: self._noticed(at, mutant, drawn, all_examples=True)))
        return by

    def _noticed(self, at: Field, mutant: Mutant, items: Sequence[pytest.Item],
                 all_examples: bool = False) -> tuple[str | None]:
        _limit()
        swap(mutant, self.root, at.functions)
        times = 1.0
        for item in items if all_examples else ():
            limit(item, most := examples(item))
            times = max(times, most / EXAMPLES)
        return (at.run(items, lambda name: times * self._patience(name)),)

    def plant_early(self, mutant: Mutant) -> str:
        """The same for an error that acts when its module is imported: the files of its tests are collected anew."""
        names = self.tests(mutant)
        files = list(dict.fromkeys(name.partition("::")[0] for name in names))
        return self._told(forked(lambda: self._noticed_early(mutant, files, names)))

    def _noticed_early(self, mutant: Mutant, files: list[str], names: list[str]) -> tuple[str | None]:
        _limit()
        import_as(self.root, mutant)

        def work(at: Field) -> tuple[str | None]:
            rank = {name: place for place, name in enumerate(names)}
            items = sorted((item for item in at.items if item.nodeid in rank), key=lambda item: rank[item.nodeid])
            return (at.run(items, self._patience) if len(items) == len(names) else "collection",)

        try:
            return collected(files, work)
        except SystemExit:
            return ("collection",)

    def _told(self, noticed: tuple[str | None] | None) -> str:
        if noticed is None:
            return "no end"
        self.kills[noticed[0] or ""] += 1
        return noticed[0] or ""


def _limit() -> None:
    """A fork that runs wild ends soon: by memory, or by the timer that each test sets."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, TO_START)


def swap(mutant: Mutant, root: Path, functions: Sequence[FunctionType]) -> None:
    """Give those of the functions that are the module's the code that they have with the error."""
    own = [each for each in functions if each.__code__.co_filename == str(root / mutant.module)]
    naming = {(each.__name__, each.__code__.co_firstlineno) for each in own
              if "__class__" in each.__code__.co_freevars}
    fresh = {(code.co_qualname, code.co_firstlineno): code for code in _codes(mutant.compiled(root, naming))}
    for function in own:
        code = function.__code__
        if (code.co_qualname, code.co_firstlineno) in fresh:
            function.__code__ = fresh[code.co_qualname, code.co_firstlineno]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def import_as(root: Path, mutant: Mutant) -> None:
    """See that the module, once imported, has the error in it."""
    file, usual = str(root / mutant.module), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return mutant.compiled(root) if loader.path == file else usual(loader, name)

    SourceFileLoader.get_code = get_code    # type: ignore[method-assign]
