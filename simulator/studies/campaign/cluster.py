"""A backend of joblib's over engines that hand out futures, as Dask and Ray do.

joblib's own ones for the two wait for ever for a call whose worker has died, or give all results at the end. Here a
call that is lost takes no other one along. It knows no scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from joblib import Parallel, ParallelBackendBase

Submit = Callable[..., "Future[Any]"]
"""Takes a function and its arguments; those that stand for shipped objects are opened where it runs."""


class Futures(ParallelBackendBase):
    """Runs each call of `Parallel` by itself through `submit`.

    Args:
        submit: Sends a call off.
        slots: Calls that the workers run at once.
        deaths: Errors that say that a worker died under its call; the call's result is then None.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, submit: Submit, slots: int, deaths: tuple[type[Exception], ...]) -> None:
        super().__init__()
        self._submit, self._slots, self._deaths = submit, slots, deaths
        self._out: set[Future[Any]] = set()

    def effective_n_jobs(self, n_jobs: int) -> int:
        return self._slots

    def submit(self, func: Any, callback: Callable[[Future[Any]], None]) -> Future[Any]:
        [(call, args, kwargs)] = func.items    # a batch is one call
        future = self._submit(call, *args, **kwargs)
        self._out.add(future)
        future.add_done_callback(self._out.discard)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> list[Any]:
        try:
            return [out.result()]
        except self._deaths:
            return [None]

    def abort_everything(self, ensure_ready: bool = True) -> None:
        for future in list(self._out):
            future.cancel()


def parallel(futures: Futures) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """joblib over these. It sends all calls at once, so that workers which join later find work."""
    return Parallel(backend=futures, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
