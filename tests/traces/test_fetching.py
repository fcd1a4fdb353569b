import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import traces.fetching
from traces import Public, TraceError, catalogue, fetch, load, public
from traces.fetching import catalogue_of

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"
CONTENT = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:48,396,109\n"


class Home:
    """A server that counts what is asked of it, and answers with `content` or a status."""

    def __init__(self) -> None:
        self.content, self.status, self.asked, self.short = CONTENT, 200, 0, False
        home = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                home.asked += 1
                self.send_response(home.status)
                self.send_header("Content-Length", str(len(home.content) + 100 * home.short))
                self.end_headers()
                self.wfile.write(home.content)

            def log_message(self, *words: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def public(self, content: bytes = CONTENT) -> Public:
        return Public("tiny-full", "Two requests", f"http://127.0.0.1:{self.server.server_port}/data/tiny.csv",
                      hashlib.sha256(content).hexdigest(), "measured", "CC-BY-4.0", "Somebody, 2023")


@pytest.fixture
def home(tmp_path, monkeypatch) -> Iterator[Home]:
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = Home()
    monkeypatch.setattr(traces.fetching, "catalogue", lambda: {"tiny-full": home.public()})
    monkeypatch.setattr(traces.readers, "catalogue", lambda: {"tiny-full": home.public()})
    yield home
    home.server.shutdown()
    home.server.server_close()


def files(tmp_path) -> list[str]:
    return [path.name for path in tmp_path.rglob("*") if path.is_file()]


def test_a_fetched_trace_is_known_by_name_with_its_terms(home, tmp_path):
    path = fetch(public("tiny-full"))
    assert path == tmp_path / "batchsim" / "traces" / "tiny-full" / "tiny.csv"
    assert path.read_bytes() == CONTENT
    trace = load("tiny-full")
    assert (trace.name, trace.prompt.tolist(), trace.licence) == ("tiny-full", [374, 396], "CC-BY-4.0")
    assert trace.source.startswith("Two requests; Somebody, 2023; http://127.0.0.1")
    assert trace.report.format == "azure"


def test_what_is_there_is_not_fetched_again_and_what_was_changed_is(home):
    path = fetch(public("tiny-full"))
    assert fetch(public("tiny-full")) == path
    assert home.asked == 1
    path.write_bytes(b"changed")
    assert fetch(public("tiny-full")).read_bytes() == CONTENT
    assert home.asked == 2


def test_a_file_with_another_checksum_is_not_kept(home, tmp_path):
    home.content = b"something else"
    with pytest.raises(TraceError, match=r"is not the one that was pinned \(its sha256 is not [0-9a-f]{64}\)"):
        fetch(public("tiny-full"))
    assert files(tmp_path) == []
    with pytest.raises(TraceError, match="tiny-full is not here yet: batchsim trace fetch tiny-full"):
        load("tiny-full")


@pytest.mark.parametrize("status", [404, 500])
def test_a_status_is_told_and_nothing_is_kept(home, tmp_path, status):
    home.status = status
    with pytest.raises(TraceError, match=rf"cannot be fetched from http.*\(status {status}\); nothing was kept"):
        fetch(public("tiny-full"))
    assert files(tmp_path) == []


def test_a_download_that_breaks_off_leaves_nothing(home, tmp_path):
    home.short = True
    with pytest.raises(TraceError, match="nothing was kept"):
        fetch(public("tiny-full"))
    assert files(tmp_path) == []


def test_without_a_network_one_line_says_so(home, tmp_path):
    away = replace(home.public(), url="http://127.0.0.1:9/tiny.csv")    # nobody listens there
    with pytest.raises(TraceError, match=r"cannot be fetched from http://127.0.0.1:9/tiny.csv \(.+\)") as error:
        fetch(away)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
    assert files(tmp_path) == []


def test_without_a_place_to_keep_it_one_line_says_where_to_choose_one(home, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    with pytest.raises(TraceError, match=r"tiny-full cannot be kept in .*taken/batchsim/traces/tiny-full \(.+\): set "
                                         r"XDG_CACHE_HOME to a folder that can be written") as error:
        fetch(public("tiny-full"))
    assert "\n" not in str(error.value)
    assert home.asked == 0


def test_the_bundled_catalogue_names_homes_checksums_and_terms():
    found = catalogue()
    assert {"azure-code-2023-full", "mooncake-conversation-full", "burstgpt-1-full"} <= found.keys()
    assert all(name == each.name and name.endswith("-full") for name, each in found.items())
    assert all(each.url.startswith("https://") and each.licence and each.citation for each in found.values())
    assert {each.checksum for each in found.values()} == {"measured", "git-lfs", "second-hand"}
    with pytest.raises(TraceError, match=r"unknown public trace 'burstgpt-1-ful': did you mean 'burstgpt-1-full'"):
        public("burstgpt-1-ful")


@pytest.mark.parametrize(("text", "words"), [
    ("a: 1", "must be a list"), ("- 1", "entry 1: must be a mapping"), ("- {name: x}", "entry 1: lacks about"),
    ("- {name: x, about: y, url: 'ftp://z', sha256: a, checksum: measured, licence: b, citation: c}", "x: a url")])
def test_a_catalogue_that_is_none_is_refused(tmp_path, text, words):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(TraceError, match=words):
        catalogue_of(tmp_path / "c.yaml")


def test_importing_the_traces_loads_no_client():
    import subprocess
    import sys
    code = "import sys, traces; traces.catalogue(); sys.exit('requests' in sys.modules or 'pooch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(not (SHARED / "MANIFEST.json").exists(), reason="the published traces are not beside the project")
def test_checksums_that_were_measured_are_those_of_the_files():
    manifest = json.loads((SHARED / "MANIFEST.json").read_text(encoding="utf-8"))
    files = {each["sha256"]: each for each in manifest["files"]}
    measured = [each for each in catalogue().values() if each.checksum == "measured"]
    assert len(measured) == 5
    for each in measured:
        file = SHARED / files[each.sha256]["file"]
        assert hashlib.sha256(file.read_bytes()).hexdigest() == each.sha256
        assert (each.bytes, each.rows) == (file.stat().st_size, files[each.sha256]["rows"])
        assert each.path.name == file.name
