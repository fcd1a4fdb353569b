"""Dask and Ray, with two workers each, give what one process gives. Skipped where they are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from odd_measures import DIES, DIES_ONCE, FAILS_ONCE, odd, served
from test_campaign import SMALL, points, values

import simulator.studies.campaign
from simulator import InputError
from simulator.studies.campaign import Backend, Failure, Store, campaign

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1]}",
               "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
"""Workers import what stands here. Dask does not try again by itself what killed a worker: that is ours to do."""


@pytest.fixture(scope="module")
def dask() -> Iterator[Backend]:
    """A scheduler and two workers, each a process of its own, as on a cluster."""
    pytest.importorskip("distributed", reason="needs dask: pip install 'batchsim[dask]'")
    code = ("import sys\nfrom distributed import LocalCluster\n"
            "if __name__ == '__main__':\n"
            "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:\n"
            "        print(cluster.scheduler_address, flush=True)\n        sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as cluster:
        assert cluster.stdout
        yield Backend("dask", address=cluster.stdout.readline().strip())


@pytest.fixture(scope="module")
def ray() -> Iterator[Backend]:
    """A Ray of two workers on this machine, which stays for all tests."""
    module = pytest.importorskip("ray", reason="needs ray: pip install 'batchsim[ray]'")
    module.init(address="local", num_cpus=2, include_dashboard=False, logging_level="CRITICAL", log_to_driver=False,
                runtime_env={"env_vars": {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}})
    yield Backend("ray")
    module.shutdown()


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs dask: pip install 'batchsim[dask]'")
    monkeypatch.setattr("simulator.studies.campaign.on_dask.PATIENCE_S", 0.2)
    with pytest.raises(InputError) as caught:
        campaign({"it": SMALL}, served, backend=Backend("dask", address="tcp://127.0.0.1:9"))
    assert str(caught.value).startswith("no Dask scheduler answers at tcp://127.0.0.1:9 (")
    assert str(caught.value).endswith("): start one with `dask scheduler`, or give its address with --scheduler")


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nonsense"])
def test_a_ray_that_is_not_there_is_one_line(address: str) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install 'batchsim[ray]'")
    with pytest.raises(InputError, match=f"^no Ray head answers at {address} "):
        campaign({"it": SMALL}, served, backend=Backend("ray", address=address))


@pytest.mark.parametrize(("backend", "module"), [(Backend("dask", address="tcp://h:1"), "distributed"),
                                                 (Backend("ray"), "ray")])
def test_an_engine_that_is_not_installed_is_one_line(backend: Backend, module: str,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"simulator.studies.campaign.on_{backend.name}", raising=False)
    monkeypatch.delattr(simulator.studies.campaign, f"on_{backend.name}", raising=False)
    with pytest.raises(InputError) as caught:
        campaign({"it": SMALL}, served, backend=backend)
    assert str(caught.value) == f"backend {backend.name} is not installed: pip install 'batchsim[{backend.name}]'"


def check_equal(backend: Backend, folder: Path) -> None:
    """What the backend stores has the bytes that one process stores."""
    for name, each in (("here", Backend()), ("there", backend)):
        with Store(folder / name) as store:
            campaign(points(7, 8), served, backend=each, store=store)
    files = [{path.name: path.read_bytes() for path in (folder / name / "points").iterdir()}
             for name in ("here", "there")]
    assert files[0] == files[1]
    assert len(files[0]) == 8


def check_deaths(backend: Backend, folder: Path) -> None:
    """One point kills whoever runs it, one only the first, one fails once; the others do not notice."""
    found = campaign(points(DIES, DIES_ONCE, FAILS_ONCE), partial(odd, folder=str(folder)), backend=backend, retries=1)
    dead = found.pop(f"seed={DIES}")
    assert dead == Failure(SMALL.but(seed=DIES), "the process that ran it died: killed, or out of memory", 2)
    assert values(found) == values(campaign(points(DIES_ONCE, FAILS_ONCE), served))


def test_dask_equals_one_process(dask: Backend, tmp_path: Path) -> None:
    check_equal(dask, tmp_path)


@pytest.mark.slow
def test_dask_survives_workers_that_die(dask: Backend, tmp_path: Path) -> None:
    check_deaths(dask, tmp_path)


@pytest.mark.slow
def test_ray_equals_one_process(ray: Backend, tmp_path: Path) -> None:
    check_equal(ray, tmp_path)


@pytest.mark.slow
def test_ray_survives_workers_that_die(ray: Backend, tmp_path: Path) -> None:
    check_deaths(ray, tmp_path)


@pytest.mark.slow
def test_a_dask_that_has_lost_its_workers_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs dask: pip install 'batchsim[dask]'")
    monkeypatch.setattr("simulator.studies.campaign.on_dask.DESERTED_S", 2)
    code = ("from distributed import Scheduler, Worker\nimport asyncio, sys\n"
            "async def serve(address):\n"
            "    async with (Worker(address) if address else Scheduler(host='127.0.0.1', dashboard=False)) as node:\n"
            "        print(node.address, flush=True)\n        await node.finished()\n"
            "asyncio.run(serve(sys.argv[1] if sys.argv[1:] else ''))\n")

    def started(*address: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", code, *address], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL,
                                env={**ENVIRONMENT, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "9"})

    with started() as scheduler:
        assert scheduler.stdout
        address = scheduler.stdout.readline().strip()
        with started(address) as worker:
            assert worker.stdout
            worker.stdout.readline()
            with pytest.raises(InputError) as caught:
                campaign({"dies": SMALL.but(seed=DIES)}, partial(odd, folder=str(tmp_path)),
                         backend=Backend("dask", address=address))
        scheduler.kill()
    assert str(caught.value) == (f"the Dask scheduler at {address} has lost all its workers: start what is missing, "
                                 "and go on with --resume")


def test_a_scheduler_without_workers_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'batchsim[dask]'")
    closed: list[bool] = []

    class Client:
        def __init__(self, address: str, **options: object) -> None:
            assert address == "tcp://h:1"

        def wait_for_workers(self, count: int, timeout: float) -> None:
            raise TimeoutError

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr(distributed, "Client", Client)
    with pytest.raises(InputError) as caught:
        campaign({"it": SMALL}, served, backend=Backend("dask", address="tcp://h:1"))
    assert str(caught.value) == ("the Dask scheduler at tcp://h:1 has no workers: start some with `dask worker "
                                 "tcp://h:1`")
    assert closed == [True]


class TinyRay:
    """What we ask of Ray, in this process. `refuses`: with which words it does not start."""

    def __init__(self, refuses: str = "") -> None:
        self._refuses, self.told = refuses, list[str]()

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str, **options: object) -> None:
        self.told.append(f"init {address}")
        if self._refuses:
            raise RuntimeError(self._refuses)

    def remote(self, **options: object) -> Callable[[Callable[..., Any]], Any]:
        def task(function: Callable[..., Any]) -> Any:
            def run(*args: Any) -> Any:
                future: Future[Any] = Future()
                future.set_result(function(*args))
                return SimpleNamespace(future=lambda: future)

            return SimpleNamespace(remote=run)

        return task

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, trace: Any) -> Any:
        return trace

    def shutdown(self) -> None:
        self.told.append("shutdown")


def test_a_ray_that_we_start_is_shut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install 'batchsim[ray]'")
    from simulator.studies.campaign import on_ray
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    tiny = TinyRay()
    monkeypatch.setattr(on_ray, "ray", tiny)
    assert campaign(points(), served, backend=Backend("ray")) == campaign(points(), served)
    assert tiny.told == ["init local", "shutdown"]


def test_a_ray_that_does_not_let_us_in_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install 'batchsim[ray]'")
    from simulator.studies.campaign import on_ray
    tiny = TinyRay("Version mismatch:\nmore")
    monkeypatch.setattr(on_ray, "ray", tiny)
    with pytest.raises(InputError) as caught:
        campaign({"it": SMALL}, served, backend=Backend("ray", address="auto"))
    assert str(caught.value) == ("Ray at auto does not let us in (Version mismatch): it wants the same versions of Ray "
                                 "and Python, and its token where it asks for one")
    assert tiny.told == ["init auto"]
